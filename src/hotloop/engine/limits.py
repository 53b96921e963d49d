"""Meter: what a run has spent of its budget, and whether more may start.

The budget's clock starts when the problem is loaded and includes the final tier, so a part of it is
kept back for that. What is spent is written to the store every few seconds, so it survives a crash.
Tokens and dollars are not counted here: only generators that call a model spend them.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

from hotloop.core.attempt import Budget
from hotloop.core.protocols import Store
from hotloop.core.statistics import median, quantile
from hotloop.core.verdict import Tier
from hotloop.errors import StoreError

HEARTBEAT_S = 2.0
"""Real seconds between two writes of what was spent: a crash miscounts this much at most."""

FINAL_PER_FAST = 6.0
"""How many fast verifications one final verification is taken to cost until one was measured. It
repeats the fast tier's work with new seeds and held-out sizes and times all baselines beside the
candidate."""

FINAL_FIXED_S = 5.0
"""Seconds that a final verification costs whatever the kernel: a fresh process with torch, triton
and a GPU context (3.4 s of imports and about a second of CUDA start, measured on an H200)."""

RESERVE_FRAC = 0.5
"""The reserve never takes more of the budget than this, or a short run would search nothing."""


class Meter:
    """Accounts for one run's wall clock; a context manager while the clock runs."""

    def __init__(
        self,
        budget: Budget,
        store: Store,
        *,
        clock: Callable[[], float],
        has_final: bool,
        heartbeat_s: float = HEARTBEAT_S,
    ) -> None:
        """Take up what earlier sessions spent; `clock` returns monotonic seconds."""
        self._budget = budget
        self._store = store
        self._clock = clock
        self._has_final = has_final
        self._heartbeat_s = heartbeat_s
        self._earlier_s = store.spent_s()
        self._began_s = clock()
        self._saved_s = 0.0
        self._seconds: dict[Tier, list[float]] = {Tier.FAST: [], Tier.FINAL: []}
        self._mutex = threading.Lock()
        self._ended = threading.Event()
        self._failure: StoreError | None = None
        self._heart = threading.Thread(target=self._beat, name="meter", daemon=True)

    def __enter__(self) -> Meter:
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
        return self._earlier_s + self._clock() - self._began_s

    def remaining_s(self) -> float:
        """Return the seconds left; infinite without a limit, negative when overspent."""
        return math.inf if self._budget.wall_s is None else self._budget.wall_s - self.spent_s()

    def save(self) -> None:
        """Write what was spent since the last time.

        Raises:
            StoreError: it cannot be written.
        """
        with self._mutex:
            running_s = self._clock() - self._began_s
            unsaved_s = running_s - self._saved_s
            if unsaved_s > 0:
                self._store.spend(unsaved_s)
                self._saved_s = running_s

    def observe(self, tier: Tier, seconds: float) -> None:
        """Learn how long one verification took."""
        self._seconds[tier].append(seconds)

    def longest_fast_s(self) -> float | None:
        """Return how long this session's slowest fast verification took; None before the first."""
        return max(self._seconds[Tier.FAST], default=None)

    def final_estimate_s(self) -> float:
        """Return what one final verification is expected to take."""
        if self._seconds[Tier.FINAL]:
            return max(self._seconds[Tier.FINAL])
        fast = self._seconds[Tier.FAST]
        return FINAL_FIXED_S + FINAL_PER_FAST * (median(fast) if fast else 0.0)

    def reserve_s(self) -> float:
        """Return the seconds kept back for the final tier; 0 where there is none."""
        if not self._has_final or self._budget.wall_s is None:
            return 0.0
        return min(self.final_estimate_s(), RESERVE_FRAC * self._budget.wall_s)

    def allows_fast(self) -> bool:
        """Whether another fast verification can end before the reserve is touched.

        The slowest tenth so far is taken as its duration; the first one may always start.
        """
        fast = self._seconds[Tier.FAST]
        expected_s = quantile(fast, 0.9) if fast else 0.0
        left_s = self.remaining_s() - self.reserve_s()
        return left_s > 0 and left_s >= expected_s

    def allows_final(self) -> bool:
        """Whether another final verification is expected to end within the budget."""
        return self.remaining_s() >= self.final_estimate_s()

    def _beat(self) -> None:
        while not self._ended.wait(self._heartbeat_s):
            try:
                self.save()
            except StoreError as exc:
                self._failure = exc
                return
