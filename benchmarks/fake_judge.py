"""A judge without torch: the frames, the processes and the deaths of a real one, and no work.

    python -m benchmarks.fake_judge SECONDS

speaks what `hotloop.worker.judge` speaks. Each verification starts a candidate's process that takes
so many seconds; the verdict comes from the kernel's digest and measures nothing. A candidate whose
process was killed from outside is the machine's fault here: it is asked for again.
"""

from __future__ import annotations

import hashlib
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem
from hotloop.core.record import from_json, to_json
from hotloop.core.verdict import Status, Tier, Verdict
from hotloop.core.wire import PROTOCOL_VERSION, Request, Response, read_frame, write_frame
from hotloop.errors import InfraError
from hotloop.testing.fakes import FakeVerifier, fake_verdict


def digest_verdict(candidate: Candidate, tier: Tier, device: str) -> Verdict:
    """Return a latency from 1 ms to 2 ms, or one time in five a failure: the same every time."""
    number = int(hashlib.sha256(candidate.id.encode()).hexdigest()[:8], 16)
    outcome = Status.INCORRECT_NUMERICAL if number % 5 == 0 else 1.0 + number / (1 << 32)
    return fake_verdict(outcome, candidate.id, tier=tier, device=device)


class FakeJudge:
    """Answers requests; one verification at a time, signs of life beside it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._device = "cuda"
        self._writing = threading.Lock()
        self._work: queue.Queue[Request | None] = queue.Queue()

    def serve(self) -> None:
        """Serve until the pipe ends."""
        threading.Thread(target=self._read, daemon=True).start()
        while (request := self._work.get()) is not None:
            try:
                response = Response(id=request.id, result=self._answer(request))
            except InfraError as exc:
                response = Response(id=request.id, error=InfraError.__name__, message=str(exc))
            self._send(response)

    def _read(self) -> None:
        try:
            while (frame := read_frame(sys.stdin.buffer)) is not None:
                request = from_json(Request, frame)
                if request.method in ("ping", "build"):
                    self._send(Response(id=request.id))
                else:
                    self._work.put(request)
        finally:
            os._exit(0)  # its coordinator is gone: it reads nothing more, or sends nothing

    def _send(self, response: Response) -> None:
        with self._writing:
            write_frame(sys.stdout.buffer, to_json(response))

    def _answer(self, request: Request) -> Any:
        params: Mapping[str, Any] = request.params
        if request.method == "hello":
            self._device = params["device"]
            return {"protocol": PROTOCOL_VERSION, "environment": {}}
        if request.method == "load":
            problem = from_json(Problem, params["problem"])
            return to_json(FakeVerifier(device=self._device).load(problem))
        candidate = from_json(Candidate, params["candidate"])
        self._run_candidate()
        return to_json(digest_verdict(candidate, Tier(params["tier"]), self._device))

    def _run_candidate(self) -> None:
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            time.sleep(self._seconds)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        if status != 0:
            raise InfraError(f"the candidate's process ended with status {status}")


if __name__ == "__main__":
    FakeJudge(float(sys.argv[1])).serve()
