"""RunClock: the wall seconds that a run has spent, over all its sessions.

What is spent is written to the store every few seconds, so it survives a crash. The clock can be
stopped while nobody but somebody outside has anything to do, or another run has its turn on the GPU
that both use, and it does not count the time in which the process itself was stopped (SIGSTOP, a
frozen container; a sleeping machine stops the monotonic clock anyway). It never reads the time of
day, so nobody who sets that changes a budget.
What may start in the time that is left is the meter's to say.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hotloop.core import kill_points
from hotloop.core.protocols import Store
from hotloop.errors import StoreError

HEARTBEAT_S = 2.0
"""Real seconds between two writes of what was spent: a crash miscounts this much at most."""

SUSPENDED_S = 5.0
"""A heart that is silent for this long had been stopped with its process. A write to a slow disk is
waited for and counts; a shorter stop counts as well."""


class RunClock:
    """Counts and stores spent seconds; a context manager while the clock runs."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float],
        *,
        heartbeat_s: float = HEARTBEAT_S,
        pulse: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take up what earlier sessions spent.

        Args:
            store: where it is written.
            clock: returns the monotonic seconds that are counted.
            heartbeat_s: real seconds between two writes.
            pulse: returns real monotonic seconds; it tells when the process was stopped.
        """
        self._store = store
        self._clock = clock
        self._heartbeat_s = heartbeat_s
        self._earlier_s = max(store.spent_s(), _latest_s(store))
        self._began_s = clock()
        self._paused_s = 0.0
        self._suspended_s = 0.0
        self._pulse = pulse
        self._last_pulse_s = pulse()
        self._pause_began_s: float | None = None
        self._pauses = 0
        self._saved_s = store.spent_s() - self._earlier_s
        self._mutex = threading.RLock()
        self._ended = threading.Event()
        self._failure: StoreError | None = None
        self._heart = threading.Thread(target=self._beat, name="meter", daemon=True)

    def __enter__(self) -> RunClock:
        with self._mutex:
            self._last_pulse_s = self._pulse()
        self._heart.start()
        return self

    def __exit__(self, kind: object, *exc: object) -> None:
        self._ended.set()
        self._heart.join()
        # A store that failed already must not hide the error that ends the run.
        if kind is None or self._failure is None:
            self.save()

    def spent_s(self) -> float:
        """Return the wall seconds that this and earlier sessions have spent.

        Raises:
            StoreError: they could not be written meanwhile.
        """
        if self._failure is not None:
            raise self._failure
        return self._earlier_s + self._running_s()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clock inside the block, from any thread; blocks may overlap."""
        with self._mutex:
            self._notice_suspension()
            if self._pause_began_s is None:
                self._pause_began_s = self._clock()
            self._pauses += 1
        try:
            yield
        finally:
            with self._mutex:
                self._notice_suspension()
                self._pauses -= 1
                if not self._pauses:
                    self._paused_s += self._clock() - self._pause_began_s
                    self._pause_began_s = None

    def save(self) -> None:
        """Write what was spent since the last time.

        Raises:
            StoreError: it cannot be written.
        """
        with self._mutex:
            running_s = self._running_s()
            unsaved_s = running_s - self._saved_s
            if unsaved_s > 0:
                kill_points.reach("before-spend")
                self._store.spend(unsaved_s)
                kill_points.reach("after-spend")
                self._saved_s = running_s
            self._last_pulse_s = self._pulse()

    def _running_s(self) -> float:
        with self._mutex:
            self._notice_suspension()
            until_s = self._clock() if self._pause_began_s is None else self._pause_began_s
            return until_s - self._began_s - self._paused_s - self._suspended_s

    def _notice_suspension(self) -> None:
        # Only a running heart can fall silent; in a pause nothing is counted anyway.
        now_s = self._pulse()
        silent_s = now_s - self._last_pulse_s
        is_beating = self._heart.is_alive() and not self._ended.is_set()
        if (
            silent_s > max(SUSPENDED_S, 2 * self._heartbeat_s)
            and is_beating
            and self._pause_began_s is None
        ):
            self._suspended_s += silent_s
        self._last_pulse_s = now_s

    def _beat(self) -> None:
        while not self._ended.wait(self._heartbeat_s):
            try:
                self.save()
            except StoreError as exc:
                self._failure = exc
                return


def _latest_s(store: Store) -> float:
    """Return the latest time that an attempt bears.

    A crash loses what was spent since the last heartbeat, but not the attempts of that time. The
    clock must not fall behind them: their times tell in which order things were found.
    """
    times = [s for a in store.attempts() for s in (a.started_s, a.finished_s) if s is not None]
    return max(times, default=0.0)
