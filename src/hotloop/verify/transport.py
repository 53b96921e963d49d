"""A judge behind a pipe: requests, answers, and what its death means.

Several threads may wait for answers at once (builds beside a verification). A judge that dies or
does not answer is this machine's fault: `WorkerDied`, `WorkerTimeout`, never a verdict.
"""

from __future__ import annotations

import contextlib
import itertools
import queue
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hotloop import errors
from hotloop.core.record import from_json, to_json
from hotloop.core.wire import Request, Response, read_frame, write_frame
from hotloop.errors import HotloopError, InfraError, WorkerDied, WorkerTimeout

STOP_S = 10.0


class JudgeProcess:
    """A running judge; thread-safe."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], log: Any) -> None:
        self._process = subprocess.Popen(
            list(command),
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
        self._log_path: object = getattr(log, "name", None)
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._waiting: dict[int, queue.Queue[Response]] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def request(
        self,
        method: str,
        params: Mapping[str, Any],
        timeout_s: float,
        *,
        silence_s: float | None = None,
    ) -> Any:
        """Send one request and return its result.

        Args:
            method: what to do.
            params: with what.
            timeout_s: how long the work may take.
            silence_s: ask for a sign of life that often, and give up without one for as long; None
                for never, where somebody else asks.

        Raises:
            HotloopError: the judge answered with this error.
            WorkerDied: the judge ended, or gave no sign of life.
            WorkerTimeout: no answer within `timeout_s`.
        """
        request = Request(id=next(self._ids), method=method, params=params)
        answer: queue.Queue[Response] = queue.Queue()
        with self._lock:
            self._waiting[request.id] = answer
            self._write(request)
        try:
            response = self._await(answer, method, timeout_s, silence_s)
        finally:
            with self._lock:
                self._waiting.pop(request.id, None)
        if response.error is not None:
            raise _error_class(response.error)(response.message or response.error)
        return response.result

    def _await(
        self, answer: queue.Queue[Response], method: str, timeout_s: float, silence_s: float | None
    ) -> Response:
        deadline_s = time.monotonic() + timeout_s
        while True:
            left_s = deadline_s - time.monotonic()
            try:
                return answer.get(timeout=max(0.0, min(left_s, silence_s or left_s)))
            except queue.Empty:
                if silence_s is None or left_s <= silence_s:
                    raise WorkerTimeout(
                        f"the judge did not answer `{method}` within {timeout_s:.0f} s; it was "
                        "stopped"
                    ) from None
            try:
                self.request("ping", {}, silence_s)
            except WorkerTimeout:
                if answer.empty():
                    raise WorkerDied(
                        f"the judge gave no sign of life for {silence_s:.0f} s at `{method}`; it "
                        "was stopped"
                    ) from None

    def exit_code(self) -> int | None:
        """Return how the process ended (negative: by a signal); None while it runs."""
        return self._process.poll()

    def close(self) -> None:
        """Ask the judge to end, then make sure. Idempotent."""
        try:
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._process.wait(timeout=STOP_S)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):  # one in a driver may not end
                self._process.wait(timeout=STOP_S)
        self._reader.join(STOP_S)
        if self._process.stdout is not None and not self._reader.is_alive():
            self._process.stdout.close()

    def kill(self) -> None:
        """End the judge at once; its zygotes follow it."""
        self._process.kill()
        self.close()

    def _write(self, request: Request) -> None:
        assert self._process.stdin is not None
        try:
            write_frame(self._process.stdin, to_json(request))
        except (OSError, ValueError) as exc:
            raise WorkerDied(self._death(self._process.poll())) from exc

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            while (frame := read_frame(self._process.stdout)) is not None:
                response = from_json(Response, frame)
                with self._lock:
                    waiting = self._waiting.get(response.id)
                if waiting is not None:
                    waiting.put(response)
        except (ValueError, OSError):
            self._process.kill()  # a judge that writes nonsense is as good as dead
        finally:
            self._fail_waiters()

    def _fail_waiters(self) -> None:
        try:
            code: int | None = self._process.wait(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            code = None
        with self._lock:
            for request_id, waiting in self._waiting.items():
                waiting.put(
                    Response(id=request_id, error=WorkerDied.__name__, message=self._death(code))
                )

    def _death(self, code: int | None) -> str:
        how = "ended" if code is None else f"ended with code {code}"
        look = (
            f"see {self._log_path}"
            if isinstance(self._log_path, (str, Path))
            else "the problem's own code may have ended it: run the file by itself"
        )
        return f"the judge {how} before it answered; {look}, then run again"


def _error_class(name: str) -> type[HotloopError]:
    found = getattr(errors, name, None)
    if isinstance(found, type) and issubclass(found, HotloopError):
        return found
    return InfraError
