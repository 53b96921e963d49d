"""Replay recorded launches for the judge, in a process that holds no candidate Python.

Serves the same requests as a candidate. One replayer a set; outputs lie in scratch memory, as they
did in the forward, and are copied into the judge's buffers outside the timed span. One request is
its own:

    cross    all sets, by the clocks beside CUPTI          -> what `cross_times` returns
"""

from __future__ import annotations

from typing import Any

import torch

from hotloop.worker.arena import Slot, torch_dtype
from hotloop.worker.channel import Channel
from hotloop.worker.cross_clock import cross_times
from hotloop.worker.host import Host
from hotloop.worker.recording import Recording
from hotloop.worker.replayer import Replayer
from hotloop.worker.tables import Tables


def serve(channel: Channel, arena_fd: int | None) -> int:
    """Serve the judge's requests with a recording. Returns the exit code."""
    return ReplayHost(arena_fd).serve(channel)


class ReplayHost(Host):
    """Runs recorded kernel launches instead of a forward."""

    _replayers: list[Replayer]
    _launches: int
    """Kernels of one forward."""
    _outputs: list[list[torch.Tensor]]

    def load(self, message: dict[str, Any]) -> None:
        """Load the machine code and bind it to every set of the arena; tables come as a file."""
        came, self.received = self.received, []  # the tables' own from here
        tables = Tables.take(came)
        recording = Recording.from_answer(message, tables)
        base = self.arena.bytes.data_ptr()
        self._replayers, self._outputs = [], []
        self._launches = len(recording.launches)
        for start in message["set_offsets"]:
            modules = self._replayers[0].modules if self._replayers else None
            addresses = {"state": base, "set": base + start}
            replayer = Replayer(recording, addresses, modules=modules)
            self._replayers.append(replayer)
            self._outputs.append([self._output_view(replayer, o) for o in recording.outputs])
        if tables is not None:
            tables.close()

    def prepare(self) -> None:
        """Do nothing: tables of `prepare()` are part of the recording."""

    def forward(self, index: int) -> list[torch.Tensor]:
        """Launch the recorded kernels on set `index`."""
        self._replayers[index].launch(torch.cuda.current_stream().cuda_stream)
        return self._outputs[index]

    def poison(self) -> None:
        """Poison the scratch memory, outputs included."""
        for replayer in self._replayers:
            replayer.poison()

    def _handle(self, message: dict[str, Any]) -> dict[str, Any]:
        return self._cross() if message["op"] == "cross" else super()._handle(message)

    def _cross(self) -> dict[str, Any]:
        """Time the launches by the clocks beside CUPTI; give the judge every set's outputs."""
        self.poison()
        self._sync()
        answer = cross_times(self._clock, self.forward, len(self._replayers), self._launches)
        for index, outputs in enumerate(self._outputs):
            self._copy_out(outputs, index)
        self._sync()
        return answer

    def record(self, message: dict[str, Any]) -> dict[str, Any]:
        """Refuse: a replay is not recorded again."""
        raise ValueError("expected a candidate to record, got a replay")

    def _output_view(self, replayer: Replayer, place: dict[str, Any]) -> torch.Tensor:
        slot = Slot(place["offset"], tuple(place["shape"]), tuple(place["stride"]), place["dtype"])
        address = replayer.addresses[place["buffer"]] + place["offset"]
        flat = torch.as_tensor(_Memory(address, slot.span_bytes), device="cuda")
        return flat.view(torch_dtype(slot.dtype)).as_strided(slot.shape, slot.strides)


class _Memory:
    """Device memory for torch, through the CUDA array interface."""

    def __init__(self, address: int, n_bytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (n_bytes,), "typestr": "|u1", "data": (address, False), "version": 3,
        }  # fmt: skip
