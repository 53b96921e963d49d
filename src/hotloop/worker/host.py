"""What every process that runs kernels for the judge does alike: map the arena, serve requests.

A host answers one request at a time. A call is the same in every phase: poison the free memory,
run, copy the outputs in stream order into the judge's buffers, wait for the device; a batch leaves
the poison out. `candidate.py` runs a model's forward, `cuda_host.py` kernels in CUDA C++,
`replay_host.py` recorded launches.

    attach   where the arena lies; comes first           -> {}
    load     where everything lies in it, what to run    -> {"prepare_ms"}
    prepare  the state in the arena changed              -> {"prepare_ms"}
    place    inputs and outputs lie elsewhere from now   -> {}
    call     one forward on set i, timed or not          -> {"outputs", "elapsed_ms", "kernels"}
    batch    all sets in a CUDA graph (or a loop), often -> {"graph"}
    loop     later batches are a loop, no graph          -> {}
    record   one forward's kernel launches               -> {"recording"}, its tables beside it
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import torch

from hotloop.worker.arena import Arena, Slot
from hotloop.worker.arguments import decode_args
from hotloop.worker.channel import Channel, ChannelClosed, FrameTooLarge
from hotloop.worker.copy_out import copy_out
from hotloop.worker.failure import describe_error
from hotloop.worker.graph_capture import captured


class Host(ABC):
    """The shared part of a process that runs kernels for the judge."""

    def __init__(self, arena_fd: int | None) -> None:
        self._arena_fd = arena_fd
        self._arena: Arena | None = None
        self._sets: list[tuple[list[Any], list[torch.Tensor]]] = []
        self._cuda = False
        self._clock: Any = None
        self.received: list[int] = []
        """Descriptors that came with the request under way; closed once it is answered."""
        self.sent: list[int] = []
        """Descriptors to go with its answer; closed then."""
        self.patched: Callable[[], list[str]] = list
        """Names entry points that untrusted code replaced; each answer carries them."""
        self._graph: Any = None

    @abstractmethod
    def load(self, message: dict[str, Any]) -> None:
        """Make ready to run what the message describes; the arena is mapped."""

    @abstractmethod
    def prepare(self) -> None:
        """Do the work on parameters and buffers alone."""

    @abstractmethod
    def forward(self, index: int) -> list[torch.Tensor]:
        """Run once on set `index` and return the outputs."""

    @abstractmethod
    def poison(self) -> None:
        """Fill memory that the forward may take with NaN; the device is idle."""

    @abstractmethod
    def record(self, message: dict[str, Any]) -> dict[str, Any]:
        """Describe the kernel launches of one forward."""

    def check_memory(self) -> None:  # noqa: B027  most hosts leave this to the judge
        """Look for writes outside the host's own buffers after an untimed call; idle device.

        Raises:
            OutOfBoundsError: a kernel wrote there.
        """

    def serve(self, channel: Channel, first: dict[str, Any] | None = None) -> int:
        """Answer requests until the judge says `exit` or goes away. Returns the exit code.

        Args:
            channel: where requests come from.
            first: a request that was received already.
        """
        message = first
        while True:
            try:
                if message is None:
                    message, self.received = channel.receive()
            except ChannelClosed:
                return 0
            if message["op"] == "exit":
                return 0
            try:
                with torch.no_grad():
                    answer = self._handle(message)
                    answer |= {"patched": found} if (found := self.patched()) else {}
            except BaseException as exc:  # noqa: BLE001  untrusted code raises whatever it likes
                answer = {"error": describe_error(exc, os.getcwd())}
            try:
                channel.send(answer, self.sent)
            except FrameTooLarge as exc:
                channel.send({"error": describe_error(exc, os.getcwd())})
            self._close_files()
            message = None

    def _close_files(self) -> None:
        for fd in (*self.received, *self.sent):
            os.close(fd)
        self.received, self.sent = [], []

    def inputs(self, index: int) -> list[Any]:
        """Return the arguments of set `index`."""
        return self._sets[index][0]

    @property
    def arena(self) -> Arena:
        """The mapped arena; only after `attach`."""
        assert self._arena is not None
        return self._arena

    def _handle(self, message: dict[str, Any]) -> dict[str, Any]:
        handlers = {
            "attach": self._attach,
            "load": self._load,
            "prepare": self._prepare,
            "place": self._place,
            "call": self._call,
            "batch": self._batch,
            "loop": self._drop_graph,
            "record": self.record,
        }
        return handlers[message["op"]](message)

    def _attach(self, message: dict[str, Any]) -> dict[str, Any]:
        # Apart from `load`: what fails here is the machine's fault, nothing untrusted has run yet.
        self._cuda = message["device"] == "cuda"
        self._arena = Arena.open(message["arena"], self._arena_fd)
        if self._cuda:
            from hotloop.worker.clock import make_clock

            self._clock = make_clock()
        return {}

    def _load(self, message: dict[str, Any]) -> dict[str, Any]:
        self._sets = [self._map_set(s) for s in message["sets"]]
        self.load(message)
        return self._prepare(message)

    def _place(self, message: dict[str, Any]) -> dict[str, Any]:
        self._sets = [self._map_set(s) for s in message["sets"]]
        return self._drop_graph(message)

    def _map_set(self, data: dict[str, Any]) -> tuple[list[Any], list[torch.Tensor]]:
        view = self.arena.view
        inputs = [
            view(Slot.from_json(a["slot"])) if "slot" in a else decode_args([a["value"]])[0]
            for a in data["inputs"]
        ]
        return inputs, [view(Slot.from_json(s)) for s in data["outputs"]]

    def _prepare(self, _: dict[str, Any]) -> dict[str, Any]:
        self._sync()
        self._graph = None  # it reads what the last `prepare()` made, which may be gone now
        start = time.perf_counter()
        self.prepare()
        self._sync()
        return {"prepare_ms": (time.perf_counter() - start) * 1e3}

    def _call(self, message: dict[str, Any]) -> dict[str, Any]:
        index = message["set"]
        if self._cuda:
            self._sync()
            self.poison()
            self._sync()
        if not (self._cuda and message["timed"]):
            outputs = self.forward(index)
            self._copy_out(outputs, index)
            self._sync()
            self.check_memory()
            return {"outputs": [describe_output(t) for t in outputs]}
        outputs, span = self._clock.measure(lambda: self.forward(index))
        self._copy_out(outputs, index)
        self._sync()
        return {
            "outputs": [describe_output(t) for t in outputs],
            "elapsed_ms": span.elapsed_ms,
            "kernels": list(span.kernels),
            "timer": span.timer,
            "peak_memory_bytes": torch.cuda.max_memory_allocated(),
        }

    def _copy_out(self, outputs: Sequence[torch.Tensor], index: int) -> None:
        # A wrong count, shape or dtype stays uncopied: the judge reads the description and the
        # poison in its own buffer.
        for output, slot in zip(outputs, self._sets[index][1], strict=False):
            if output.shape == slot.shape and output.dtype == slot.dtype:
                copy_out(slot, output)

    def _batch(self, message: dict[str, Any]) -> dict[str, Any]:
        if self._cuda:
            self._clock.pause()  # batches are timed from outside
        if message["capture"]:
            self._graph = None
            self._graph = captured(self._run_all_sets)
            self._sync()
            return {"graph": self._graph is not None}
        for _ in range(message["repeats"]):
            if self._graph is not None:
                self._graph.replay()
            else:
                self._run_all_sets()
        self._sync()
        return {"graph": self._graph is not None}

    def _run_all_sets(self) -> None:
        for index in range(len(self._sets)):
            self._copy_out(self.forward(index), index)

    def _drop_graph(self, _: dict[str, Any]) -> dict[str, Any]:
        self._graph = None
        return {}

    def _sync(self) -> None:
        if self._cuda:
            torch.cuda.synchronize()


def describe_output(tensor: torch.Tensor) -> dict[str, Any]:
    """Return what the judge is told of an output, as JSON values."""
    return {
        "shape": list(tensor.shape),
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "device": tensor.device.type,
    }
