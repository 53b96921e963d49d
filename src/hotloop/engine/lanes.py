"""Lanes: builds that run ahead of the verifier, in a few threads.

The threads only wait: the compiler runs in processes of the verifier. They are daemons, so a build
that hangs cannot keep a stopped run alive.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

from hotloop.core.candidate import Candidate


class Build:
    """One build that was handed to a lane."""

    def __init__(self, candidate: Candidate) -> None:
        self.candidate = candidate
        self._done = threading.Event()
        self._error: BaseException | None = None

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the build has ended, or for `timeout_s`; return whether it has.

        Raises:
            InfraError: the machine was at fault; a candidate that does not compile is no error.
        """
        if not self._done.wait(timeout_s):
            return False
        if self._error is not None:
            raise self._error
        return True

    @property
    def has_ended(self) -> bool:
        """Whether `wait` returns or raises at once."""
        return self._done.is_set()

    def run(self, build: Callable[[Candidate], None]) -> None:
        """Run it in the calling thread; `wait` raises what it raised."""
        try:
            build(self.candidate)
        except BaseException as exc:  # noqa: BLE001  handed over to the thread that waits
            self._error = exc
        finally:
            self._done.set()


class Lanes:
    """Runs up to `count` builds at a time, in the order in which they came; a context manager."""

    QUIESCE_S = 5.0
    """How long `close` waits for running builds, so that they do not disturb what comes next."""

    def __init__(self, build: Callable[[Candidate], None], count: int) -> None:
        """Raises ValueError when `count` is under 1."""
        if count < 1:
            raise ValueError(f"expected at least one lane, got {count!r}")
        self.count = count
        self._build = build
        self._waiting: queue.SimpleQueue[Build | None] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, name=f"lane-{i}", daemon=True) for i in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Lanes:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close(wait_s=0.0)

    def submit(self, candidate: Candidate) -> Build:
        """Hand a candidate to the next free lane."""
        build = Build(candidate)
        self._waiting.put(build)
        return build

    def close(self, *, wait_s: float = QUIESCE_S) -> None:
        """Drop builds that have not started and wait up to `wait_s` for the others. Idempotent."""
        self._closed.set()
        for _ in self._threads:
            self._waiting.put(None)
        deadline_s = time.monotonic() + wait_s
        for thread in self._threads:
            thread.join(max(0.0, deadline_s - time.monotonic()))

    def _work(self) -> None:
        while (build := self._waiting.get()) is not None:
            if self._closed.is_set():
                return
            build.run(self._build)
