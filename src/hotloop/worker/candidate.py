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
from hotloop.worker.channel import Channel, ChannelClosed
from hotloop.worker.cuda_host import CudaHost
from hotloop.worker.host import Host
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

    def load(self, message: dict[str, Any]) -> None:
        """Write the sources, execute the entry file, construct the model, bind the state."""
        launches = Launches()
        if self._cuda:
            from hotloop.worker.recorder import Recorder

            self._recorder = Recorder(launches)
            self._recorder.install()
        else:
            from hotloop.worker import interpreter

            interpreter.install()
            launches.watch_interpreter()
            poison.fill_new_memory()
        self._observation = Observation(launches, self.forward)
        take_on(message["precision"])
        folder = Path.cwd()
        write_sources(folder, message["sources"])
        module = import_file(folder / message["entry"], message["pins"])
        self._hosted = host_model(module, decode_args(message["init_args"]), message["device"])
        state = {k: self.arena.view(Slot.from_json(s)) for k, s in message["state"].items()}
        self._hosted.bind(state, buffers_alike=message["buffers_alike"])
        if self._cuda:
            poison.reserve(message["reserve_bytes"])

    def prepare(self) -> None:
        """Run the candidate's optional `prepare()`."""
        self._hosted.prepare()

    def forward(self, index: int) -> list[torch.Tensor]:
        """Run the candidate's forward on set `index`."""
        return flatten_outputs(self._hosted.model(*self.inputs(index)))

    def poison(self) -> None:
        """Poison the free blocks of torch's allocator."""
        poison.fill_free_blocks()

    def _handle(self, message: dict[str, Any]) -> dict[str, Any]:
        return self._observe(message) if message["op"] == "observe" else super()._handle(message)

    def _observe(self, message: dict[str, Any]) -> dict[str, Any]:
        if self._cuda:
            torch.cuda.synchronize()
            # Zeros are indices that exist: poison, taken for one, would end the CUDA context of a
            # forward that goes on with what its kernels, left out here, should have found.
            patterns = {"ghost": 0, "watch": poison.OTHER_16}
            poison.fill_free_blocks(patterns.get(message["step"], poison.PATTERN_16))
            torch.cuda.synchronize()
        start, size = self.arena.bytes.data_ptr(), self.arena.bytes.numel()
        outputs, seen = self._observation.run(
            message["step"], message["set"], range(start, start + size)
        )
        self._copy_out(outputs, message["set"])
        if self._cuda:
            torch.cuda.synchronize()
        return seen

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
