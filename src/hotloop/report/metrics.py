"""What a set of results amounts to: speed-ups, wins, fast_p and their averages.

Works on numbers that a verdict or a results file already holds; it measures nothing. Sits between
the journal and whatever prints tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hotloop.core.verdict import Performance

WIN_OVER = 1.02
"""A speed-up is a win when the lower end of its interval is over this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speedup:
    """Baseline over candidate, with its 95 % interval."""

    ratio: float
    """Ratio of medians; over 1 means the candidate is faster."""
    low: float
    high: float

    @property
    def is_win(self) -> bool:
        """Whether the lower end of the interval is over `WIN_OVER`."""
        return self.low > WIN_OVER


def speedup_over(performance: Performance, baseline: str) -> Speedup | None:
    """Return the final tier's speed-up over one baseline; None when it has no interval.

    A ratio without an interval (the fast tier) is no result, so it is not returned.

    Raises:
        ValueError: the stored interval does not hold two numbers.
    """
    ratio = performance.speedup.get(baseline)
    interval = performance.speedup_ci.get(baseline)
    if ratio is None or interval is None:
        return None
    if len(interval) != 2:
        raise ValueError(f"expected [low, high] for {baseline!r}, got {list(interval)!r}")
    return Speedup(ratio=ratio, low=interval[0], high=interval[1])


def is_win(speedup: Speedup | None) -> bool:
    """Whether a speed-up was measured and is a win."""
    return speedup is not None and speedup.is_win


def fast_p(speedups: Iterable[Speedup | None], p: float) -> float | None:
    """Return the share (0 to 1) of problems that are correct and faster than `p` times baseline.

    KernelBench's metric (arXiv:2502.10517). None stands for a problem without a
    correct kernel and counts as slower. None is returned when there are no problems.
    """
    listed = list(speedups)
    if not listed:
        return None
    return sum(s is not None and s.ratio > p for s in listed) / len(listed)
