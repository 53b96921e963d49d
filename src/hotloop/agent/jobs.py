"""Long work of the judge, and handles to it: an agent's call must not hang for minutes."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, field

from hotloop.errors import ConfigError

MAX_WAIT_S = 50.0
"""Agents give up on a call that takes a minute."""
KEPT = 100
"""Finished jobs whose answers can still be fetched."""


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work."""

    id: str
    what: str
    """In words, for who asks what is running."""
    future: Future[str] = field(repr=False)

    def answer(self, wait_s: float) -> str | None:
        """Return what the work came to; None when it is not done within `wait_s`.

        Raises:
            HotloopError: whatever the work raised.
        """
        try:
            return self.future.result(timeout=max(0.0, min(wait_s, MAX_WAIT_S)))
        except NotYet:
            if self.future.done():  # the work's own TimeoutError, not ours
                raise
            return None


class Jobs:
    """Runs one job after the other: there is one judge, and a GPU is timed alone."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="judge")
        self._numbers = itertools.count(1)
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()

    def start(self, what: str, work: Callable[[], str]) -> Job:
        """Queue a piece of work."""
        with self._lock:
            job = Job(f"job-{next(self._numbers)}", what, self._pool.submit(work))
            self._jobs[job.id] = job
            done = [name for name, other in self._jobs.items() if other.future.done()]
            for name in done[: max(0, len(self._jobs) - KEPT)]:
                del self._jobs[name]
        return job

    def find(self, job_id: str) -> Job:
        """Return the job of that handle.

        Raises:
            ConfigError: there is none, or no longer.
        """
        with self._lock:
            job = self._jobs.get(job_id)
        if job is None:
            raise ConfigError(f"there is no job {job_id[:40]!r} (any more); start the work again")
        return job

    def close(self) -> None:
        """Drop what has not begun; what runs is waited for."""
        self._pool.shutdown(wait=True, cancel_futures=True)
