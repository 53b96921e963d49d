"""Meter: what a run may still start.

The budget's clock starts when the problem is loaded and includes the final tier, so a part of it is
kept back for that. A model call may start only if it can be expected to end, and its kernel to be
verified, before that part is touched.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hotloop.core.attempt import Budget, Spent
from hotloop.core.protocols import Store
from hotloop.core.statistics import median, quantile
from hotloop.core.verdict import Tier
from hotloop.engine.costs import CallCosts, Total
from hotloop.engine.run_clock import HEARTBEAT_S, RunClock

FINAL_PER_FAST = 6.0
"""How many fast verifications one final verification is taken to cost until one was measured. It
repeats the fast tier's work with new seeds and held-out sizes and times all baselines beside the
candidate."""

FINAL_FIXED_S = 5.0
"""Seconds that a final verification costs whatever the kernel: a fresh process with torch, triton
and a GPU context (3.4 s of imports and about a second of CUDA start, measured on an H200)."""

RESERVE_FRAC = 0.5
"""The reserve never takes more of the budget than this, or a short run would search nothing."""

SLOW_SHARE_FRAC = 0.9
"""Verifications and calls are expected to take as long as the slowest tenth of those before."""

MIN_CALLS_MEASURED = 5
"""Calls that must have finished before one more can be called slow."""

READY_FRAC = 0.5
"""A reply that came in less than this part of its call's time was there already (a call of an
earlier session, a recording): it says nothing of how long the next call takes."""


class Meter:
    """Accounts for one run's time and costs; a context manager while the clock runs."""

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
        self._has_final = has_final
        self._clock = RunClock(store, clock, heartbeat_s=heartbeat_s)
        self._costs = CallCosts(store)
        self._seconds: dict[Tier, list[float]] = {Tier.FAST: [], Tier.FINAL: []}
        self._call_s: list[float] = []
        self._warned: set[str] = set()

    def __enter__(self) -> Meter:
        self._clock.__enter__()
        return self

    def __exit__(self, kind: object, *exc: object) -> None:
        self._clock.__exit__(kind, *exc)

    def spent_s(self) -> float:
        """Return the wall seconds that this and earlier sessions have spent.

        Raises:
            StoreError: they could not be written meanwhile.
        """
        return self._clock.spent_s()

    def remaining_s(self) -> float:
        """Return the seconds left; infinite without a limit, negative when overspent."""
        return math.inf if self._budget.wall_s is None else self._budget.wall_s - self.spent_s()

    def spent_tokens(self) -> int | None:
        """Return the tokens of all calls; None when a call did not say."""
        exact = self._costs.tokens().exact
        return None if exact is None else int(exact)

    def spent_usd(self) -> float | None:
        """Return the dollars of all calls; None when a call's price is unknown."""
        return self._costs.usd().exact

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clock inside the block: only somebody outside has something to do."""
        with self._clock.paused():
            yield

    def save(self) -> None:
        """Write what was spent since the last time.

        Raises:
            StoreError: it cannot be written.
        """
        self._clock.save()

    def observe(self, tier: Tier, seconds: float) -> None:
        """Learn how long one verification took."""
        self._seconds[tier].append(seconds)

    def observe_call(self, seconds: float, spent: Spent) -> None:
        """Learn how long one call took that was answered."""
        if spent.calls and seconds >= READY_FRAC * spent.call_s:
            self._call_s.append(seconds)

    def charge(self, attempt_id: int, spent: Spent) -> list[str]:
        """Write down what an attempt's calls cost; return what the user must know of it, once."""
        self._costs.add(attempt_id, spent)
        unknown = {
            "tokens": (self._budget.max_tokens, self.spent_tokens(), "how many tokens it took"),
            "usd": (self._budget.max_usd, self.spent_usd(), "what it cost"),
        }
        warnings = []
        for name, (limit, value, what) in unknown.items():
            if limit is not None and value is None and name not in self._warned:
                self._warned.add(name)
                warnings.append(
                    f"a model call did not say {what}: the limit max_{name}={limit:g} cannot hold"
                )
        return warnings

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
        left_s = self.remaining_s() - self.reserve_s()
        return left_s > 0 and left_s >= self._fast_estimate_s()

    def allows_call(self) -> bool:
        """Whether another call can end, and its kernel be verified, before the reserve is touched.

        The median call so far is taken as its duration; the first ones may always start.
        """
        expected_s = median(self._call_s) if self._call_s else 0.0
        left_s = self.call_deadline_s()
        return left_s is None or (left_s > 0 and left_s >= expected_s)

    def call_deadline_s(self) -> float | None:
        """Return the seconds that a call may take from now; None without a limit."""
        if self._budget.wall_s is None:
            return None
        return self.remaining_s() - self.reserve_s() - self._fast_estimate_s()

    def slow_call_s(self) -> float | None:
        """Return what the slowest tenth of the calls took; None while too few have finished."""
        if len(self._call_s) < MIN_CALLS_MEASURED:
            return None
        return quantile(self._call_s, SLOW_SHARE_FRAC)

    def allows_tokens(self, in_flight: int) -> bool:
        """Whether one more call fits `max_tokens` beside those under way."""
        return _fits(self._costs.tokens(), self._budget.max_tokens, in_flight)

    def allows_usd(self, in_flight: int) -> bool:
        """Whether one more call fits `max_usd` beside those under way."""
        return _fits(self._costs.usd(), self._budget.max_usd, in_flight)

    def allows_final(self) -> bool:
        """Whether another final verification is expected to end within the budget."""
        return self.remaining_s() >= self.final_estimate_s()

    def _fast_estimate_s(self) -> float:
        fast = self._seconds[Tier.FAST]
        return quantile(fast, SLOW_SHARE_FRAC) if fast else 0.0


def _fits(total: Total, limit: float | None, in_flight: int) -> bool:
    # Calls are expected to cost what the median one did, also those that did not say what they
    # cost; the first ones may start on trust.
    if limit is None:
        return True
    return total.expected < limit and total.expected + (in_flight + 1) * total.typical <= limit
