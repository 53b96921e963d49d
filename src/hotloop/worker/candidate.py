"""The candidate's process: runs untrusted code on request, in its cage.

It maps the judge's arena, loads the candidate, and serves one request at a time. Whatever it
answers is a claim: the judge looks at the arena. A candidate in CUDA C++ has no Python, so
`cuda_host.py` runs it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from hotloop.worker import poison
from hotloop.worker.arena import Slot
from hotloop.worker.arguments import decode_args
from hotloop.worker.call_sites import take_folder
from hotloop.worker.channel import Channel, ChannelClosed
from hotloop.worker.clocks import Clocks
from hotloop.worker.cuda_host import CudaHost
from hotloop.worker.dispatch_witness import DispatchWitness
from hotloop.worker.host import Host, describe_output
from hotloop.worker.launches import Launches
from hotloop.worker.module_host import (
    HostedModel,
    flatten_outputs,
    host_model,
    import_file,
    write_sources,
)
from hotloop.worker.observation import Observation
from hotloop.worker.precision import take_on
from hotloop.worker.starts import Starts


def serve(channel: Channel, arena_fd: int | None) -> int:
    """Serve the judge's requests with a candidate. Returns the exit code.

    The first request names the entry file, whose kind decides what runs it.
    """
    try:
        first, _ = channel.receive()
    except ChannelClosed:
        return 0
    host = CudaHost if str(first.get("entry", "")).endswith(".cu") else CandidateHost
    return host(arena_fd).serve(channel, first)


class CandidateHost(Host):
    """Runs a candidate's `ModelNew`."""

    _hosted: HostedModel
    _recorder: Any = None
    _observation: Observation
    _state: tuple[torch.Tensor, ...]

    def __init__(self, arena_fd: int | None) -> None:
        super().__init__(arena_fd)
        self._witness = DispatchWitness()
        self._starts = Starts()
        self._clocks = Clocks()
        self._launches = Launches()

    def load(self, message: dict[str, Any]) -> None:
        """Write the sources, execute the entry file, construct the model, bind the state."""
        launches = self._launches
        if self._cuda:
            from hotloop.worker.recorder import Recorder

            self._recorder = Recorder(launches)
            self._recorder.install()
        else:
            from hotloop.worker import interpreter

            interpreter.install()
            launches.watch_interpreter()
            poison.fill_new_memory()
        self._clocks.install()
        self._observation = Observation(launches, self.forward, self._witness, starts=self._starts)
        self.patched = self._observation.patched
        self._observation.refuse_frames()
        take_on(message["precision"])
        folder = Path.cwd()
        take_folder(folder)
        write_sources(folder, message["sources"])
        module = import_file(folder / message["entry"], message["pins"])
        self._hosted = host_model(module, decode_args(message["init_args"]), message["device"])
        state = {k: self.arena.view(Slot.from_json(s)) for k, s in message["state"].items()}
        self._state = tuple(state.values())
        self._hosted.bind(state, buffers_alike=message["buffers_alike"])
        if self._cuda:
            poison.reserve(message["reserve_bytes"])

    def prepare(self) -> None:
        """Run the candidate's optional `prepare()`."""
        self._hosted.prepare()

    def forward(self, index: int) -> list[torch.Tensor]:
        """Run the candidate's forward on set `index`."""
        with self._witness:
            inputs = self.inputs(index)
            return flatten_outputs(self._hosted.model(*inputs), "cuda" if self._cuda else "cpu")

    def poison(self) -> None:
        """Poison the free blocks of torch's allocator."""
        poison.fill_free_blocks()

    def _handle(self, message: dict[str, Any]) -> dict[str, Any]:
        if message["op"] == "observe":
            self._copy_out(self._observation.step(message["step"]), message["set"])
            self._sync()
            return {}
        self._clocks.jump(message.get("ahead_s", 0.0))
        if message["op"] == "call" and not message["timed"] and not message["bare"]:
            return self._observe(message)
        # A bare call runs as timed ones do, through the same frames; the rest is noted beside it.
        bare = message["op"] == "call" and message.get("bare", False)
        begun, launched = self._starts.count, self._launches.unwatched
        self._witness.awake = bare
        answer = super()._handle(message)
        if bare:
            answer |= {"work": self._witness.work, "started": self._starts.count - begun}
            answer["launches"] = self._launches.unwatched - launched
        return answer

    def _observe(self, message: dict[str, Any]) -> dict[str, Any]:
        poison.FreshMemory.numbers = message["fresh"] == "numbers"
        start, size = self.arena.bytes.data_ptr(), self.arena.bytes.numel()
        wanted, shared = self._sets[message["set"]][1], range(start, start + size)
        given = (*self._sets[message["set"]][0], *self._state)
        self._observation.slots = {t.data_ptr(): t for t in given if isinstance(t, torch.Tensor)}
        self._witness.awake = True
        outputs, seen = self._observation.call(
            message, wanted, shared, lambda: self._poison_with(message["fresh"])
        )
        self._copy_out(outputs, message["set"])
        self._sync()
        return {"outputs": [describe_output(t) for t in outputs], **seen}

    def _poison_with(self, fresh: str) -> None:
        if self._cuda:
            self._sync()
            poison.fill_free_blocks(poison.PATTERNS[fresh])
            self._sync()

    def record(self, message: dict[str, Any]) -> dict[str, Any]:
        """Record the kernel launches of one forward on set 0."""
        from hotloop.worker.recorder import UnreplayableError

        recorder = self._recorder
        try:
            recorder.start({"arena": self.arena.bytes})
            outputs = self.forward(0)
            torch.cuda.synchronize()
            recording = recorder.finish(outputs)
            tables = recorder.take_tables()
            if tables is not None:
                self.sent.append(tables)
        except UnreplayableError as exc:
            return {"refused": str(exc)}
        finally:
            recorder.stop()  # or every later launch would be noted, and its memory kept
        answer: dict[str, Any] = recording.to_answer()
        return answer
