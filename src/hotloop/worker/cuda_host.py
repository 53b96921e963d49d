"""Runs a candidate that is one `.cu` file: no Python of its own, only kernels and a description.

The compile lane left the machine code beside the source. Here the launch description is bound to
the judge's buffers, and the launcher that replays recordings issues the kernels, on torch's current
stream. Kernels write into buffers of this process: poisoned before each call and framed by red
zones, which are looked at after every untimed call.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from hotloop.worker.host import Host
from hotloop.worker.launch_description import LaunchDescription, LaunchDescriptionError, parse
from hotloop.worker.launch_plan import BoundPlan, bind
from hotloop.worker.launch_recording import ARENA, ArenaPlaces, record_plan
from hotloop.worker.recording import Recording
from hotloop.worker.red_zone import GuardedBuffer, check_zones
from hotloop.worker.replayer import Replayer


class CudaHost(Host):
    """Launches the kernels of a `.cu` candidate."""

    _recordings: list[Recording]
    """One a set of the arena; they differ in the offsets of the inputs."""
    _replayers: list[Replayer]
    _buffers: list[GuardedBuffer]
    """The plan's outputs, then its scratch; every set uses the same."""
    _outputs: list[torch.Tensor]

    def load(self, message: dict[str, Any]) -> None:
        """Bind the description to every set of the arena and load the machine code.

        Raises:
            LaunchDescriptionError: the description does not fit the inputs.
        """
        path = Path.cwd() / message["entry"]
        description = parse(_text_of(message))
        plan = bind(description, *_shapes(message, self.inputs(0)))
        cubin = path.with_suffix(".cubin").read_bytes()
        self._recordings = [
            record_plan(plan, cubin, self._places(description, message, sent))
            for sent in message["sets"]
        ]
        self._allocate(plan)
        self._replayers = []
        for recording in self._recordings:
            modules = self._replayers[0].modules if self._replayers else None
            self._replayers.append(
                Replayer(_with_names(recording), self._addresses(), modules=modules)
            )

    def prepare(self) -> None:
        """Do nothing: a `.cu` candidate does all its work in its launches."""

    def forward(self, index: int) -> list[torch.Tensor]:
        """Launch the kernels on set `index`."""
        self._replayers[index].launch(torch.cuda.current_stream().cuda_stream)
        return self._outputs

    def poison(self) -> None:
        """Poison outputs and scratch."""
        for buffer in self._buffers:
            buffer.poison()

    def check_memory(self) -> None:
        """Look at the red zones of outputs and scratch."""
        check_zones(self._buffers)

    def record(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return the launches on set 0; nothing else happens in a call, so none is refused."""
        return self._recordings[0].to_answer()

    def _allocate(self, plan: BoundPlan) -> None:
        self._buffers = [
            GuardedBuffer(name, shape, dtype, device="cuda")
            for name, (shape, dtype) in {**plan.outputs, **plan.scratch}.items()
        ]
        self._outputs = [buffer.tensor for buffer in self._buffers[: len(plan.outputs)]]

    def _places(
        self, description: LaunchDescription, message: dict[str, Any], sent: dict[str, Any]
    ) -> ArenaPlaces:
        offsets = {name: message["state"][name]["offset"] for name in description.state}
        for name, entry in zip(description.inputs, sent["inputs"], strict=True):
            if "slot" in entry:
                offsets[name] = entry["slot"]["offset"]
        return ArenaPlaces(self.arena.bytes.numel(), offsets)

    def _addresses(self) -> dict[str, int]:
        own = {_own_name(i): buffer.address for i, buffer in enumerate(self._buffers, start=1)}
        return {ARENA: self.arena.bytes.data_ptr(), **own}


def _with_names(recording: Recording) -> Recording:
    """Return the recording with every buffer named, so that the launcher allocates none."""
    arena, *made = recording.buffers
    named = [replace(buffer, name=_own_name(i)) for i, buffer in enumerate(made, start=1)]
    return replace(recording, buffers=(arena, *named))


def _own_name(number: int) -> str:
    return f"buffer {number}"


def _text_of(message: dict[str, Any]) -> str:
    for source in message["sources"]:
        if source["path"] == message["entry"]:
            return str(source["text"])
    raise LaunchDescriptionError(f"expected a source {message['entry']!r} among the files")


def _shapes(message: dict[str, Any], inputs: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return what `bind` needs: shapes or values of the inputs, and shapes of the state."""
    given = [tuple(v.shape) if isinstance(v, torch.Tensor) else v for v in inputs]
    return given, {name: tuple(slot["shape"]) for name, slot in message["state"].items()}
