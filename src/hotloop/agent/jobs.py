"""Long work of the judge, and handles to it: an agent's call must not hang for minutes."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, field

from hotloop.errors import ConfigError, InfraError

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
    cancelled: threading.Event = field(default_factory=threading.Event, repr=False)

    def answer(self, wait_s: float) -> str | None:
        """Return what the work came to; None when it is not done within `wait_s`.

        Raises:
            ConfigError: it was cancelled.
            HotloopError: whatever the work raised.
        """
        try:
            self._check_wanted()
            return self.future.result(timeout=max(0.0, min(wait_s, MAX_WAIT_S)))
        except NotYet:
            if self.future.done():  # the work's own TimeoutError, not ours
                raise
            return None
        except (CancelledError, InfraError):
            self._check_wanted()  # it may have been cancelled while we waited
            raise

    def _check_wanted(self) -> None:
        if self.cancelled.is_set():
            raise ConfigError(f"{self.id} ({self.what}) was cancelled; start the work again")


class Jobs:
    """Runs one job after the other: there is one judge, and a GPU is timed alone."""

    def __init__(self, stop: Callable[[], None] = lambda: None) -> None:
        """Start nothing yet; `stop` ends the work that is under way, from another thread."""
        self._stop = stop
        self._running: Job | None = None
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="judge")
        self._numbers = itertools.count(1)
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()

    def start(self, what: str, work: Callable[[], str]) -> Job:
        """Queue a piece of work."""
        with self._lock:
            job = Job(f"job-{next(self._numbers)}", what, Future())
            self._jobs[job.id] = job
            self._pool.submit(self._do, job, work)
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

    def cancel(self, job: Job) -> bool:
        """Give a piece of work up, begun or not; return False when it was done already."""
        with self._lock:  # while it is held, no other work can begin and be hit in its place
            if job.future.done():
                return False
            job.cancelled.set()
            if self._running is job:
                self._stop()
            else:
                job.future.cancel()
            return True

    def _do(self, job: Job, work: Callable[[], str]) -> None:
        with self._lock:
            if not job.future.set_running_or_notify_cancel():
                return
            self._running = job
        try:
            answer = work()
        except BaseException as exc:  # noqa: BLE001  the job's answer, for whoever asks for it
            job.future.set_exception(exc)
        else:
            job.future.set_result(answer)
        finally:
            with self._lock:
                self._running = None

    def close(self) -> None:
        """Drop what has not begun; what runs is waited for."""
        self._pool.shutdown(wait=True, cancel_futures=True)
