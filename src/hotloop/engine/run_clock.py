"""RunClock: the wall seconds that a run has spent, over all its sessions.

What is spent is written to the store every few seconds, so it survives a crash. The clock can be
stopped while nobody but somebody outside has anything to do. What may start in the time that is
left is the meter's to say.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hotloop.core.protocols import Store
from hotloop.errors import StoreError

HEARTBEAT_S = 2.0
"""Real seconds between two writes of what was spent: a crash miscounts this much at most."""


class RunClock:
    """Counts and stores spent seconds; a context manager while the clock runs."""

    def __init__(
        self, store: Store, clock: Callable[[], float], *, heartbeat_s: float = HEARTBEAT_S
    ) -> None:
        """Take up what earlier sessions spent; `clock` returns monotonic seconds."""
        self._store = store
        self._clock = clock
        self._heartbeat_s = heartbeat_s
        self._earlier_s = store.spent_s()
        self._began_s = clock()
        self._paused_s = 0.0
        self._pause_began_s: float | None = None
        self._saved_s = 0.0
        self._mutex = threading.RLock()
        self._ended = threading.Event()
        self._failure: StoreError | None = None
        self._heart = threading.Thread(target=self._beat, name="meter", daemon=True)

    def __enter__(self) -> RunClock:
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
        """Stop the clock inside the block; not to be nested."""
        with self._mutex:
            self._pause_began_s = self._clock()
        try:
            yield
        finally:
            with self._mutex:
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
                self._store.spend(unsaved_s)
                self._saved_s = running_s

    def _running_s(self) -> float:
        with self._mutex:
            until_s = self._clock() if self._pause_began_s is None else self._pause_began_s
            return until_s - self._began_s - self._paused_s

    def _beat(self) -> None:
        while not self._ended.wait(self._heartbeat_s):
            try:
                self.save()
            except StoreError as exc:
                self._failure = exc
                return
