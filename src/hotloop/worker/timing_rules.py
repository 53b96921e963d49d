"""When a measured time is believed: decisions on numbers alone.

Three clocks look at one kernel: CUPTI (the figure that is reported), a slope over CUDA graphs of
two lengths, and a stream that is held while calls queue up behind it. One program timed against
itself says whether the machine can tell a ratio at all. Nothing here measures (`cross_clock.py`,
`interleave.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

STEP_MS = 32e-6
"""Step of CUPTI's time stamps on an H200 (docs/decisions/001)."""
CONTROL_FRAC = 0.01
"""By how much a program may differ from itself. Half of what a win must exceed (1.02), so that an
error of that size cannot make one; one process on a quiet H200 showed 0.0004 to 0.001
(docs/decisions/001)."""
NOISY_FRAC = 0.03
"""The same where the ratio's interval holds 1: calls scatter, the program does not differ. The
speed-up's own interval is as wide then."""
CONTROL_STEPS = 2
"""Medians of a few steps' length move by one step on either side without a fault."""
SHORT_MS = 0.020
"""Below this, single calls are checked with the other two clocks."""
LAUNCH_BOUND_MS = 0.003
"""Below this the time is that of a launch: an empty kernel takes 0.0007 ms on an H200 by
CUPTI and 0.0011 ms in a row of them (benchmarks/results/timing_h200.json)."""
SLACK_MS, SLACK_FRAC = 0.0003, 0.10
"""Two clocks agree within the larger of these."""

GAP_FRAC = 1.1
"""A call this much longer than its kernels took has waited for launches."""
FRESH_FRAC = 0.5
"""A claim below this share of a call on values never seen before is not believed. One short batch
on a cold cache is a rough clock: a factor of two is what it can tell."""
FRESH_HAND_OVER_MS = 0.5
"""What may be left of waking both sides in a batch's time (docs/decisions/001: up to 0.4 ms)."""


def control_limit_frac(ms: float) -> float:
    """Return by how much of 1 the ratio of a program to itself may differ, for calls of `ms`."""
    return max(CONTROL_FRAC, CONTROL_STEPS * STEP_MS / ms) if ms > 0 else CONTROL_FRAC


@dataclass(frozen=True, slots=True)
class Control:
    """One program against itself, interleaved as candidate and baseline are."""

    baseline: str
    """Which program it was."""
    ratio: float
    """Ratio of medians, one side over the other."""
    interval: tuple[float, float]
    """95 % bootstrap interval of it."""
    ms: float
    """The program's time."""
    tries: int

    @property
    def limit_frac(self) -> float:
        """By how much the ratio may differ from 1."""
        limit = control_limit_frac(self.ms)
        low, high = self.interval
        if low <= 1.0 <= high:
            return max(limit, NOISY_FRAC)
        return limit

    @property
    def holds(self) -> bool:
        """Whether ratios of this session mean something."""
        return abs(self.ratio - 1.0) <= self.limit_frac

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "baseline": self.baseline,
            "ratio": self.ratio,
            "interval": list(self.interval),
            "limit_frac": self.limit_frac,
            "tries": self.tries,
            "holds": self.holds,
        }


@dataclass(frozen=True, slots=True)
class ClockPair:
    """What both other clocks say of one call, in milliseconds; None: it could not be measured."""

    graph_slope_ms: float | None
    blocked_stream_ms: float | None


@dataclass(frozen=True, slots=True)
class CrossReading:
    """A kernel and a near-empty one, by the clocks beside CUPTI."""

    call: ClockPair
    empty: ClockPair
    empty_ms: float
    """The near-empty kernel by CUPTI: the floor of anything that is launched."""

    def boundaries(self) -> ClockPair:
        """Return what each clock counts between two launches and CUPTI does not.

        It is the near-empty kernel's: a candidate has no influence on it.
        """

        def beyond(ms: float | None) -> float | None:
            return None if ms is None else max(0.0, ms - self.empty_ms)

        return ClockPair(beyond(self.empty.graph_slope_ms), beyond(self.empty.blocked_stream_ms))

    def own(self) -> dict[str, float]:
        """Return what each clock says of the call itself: no launch's boundary."""
        edge = self.boundaries()
        found = {
            "graph_slope": (self.call.graph_slope_ms, edge.graph_slope_ms),
            "blocked_stream": (self.call.blocked_stream_ms, edge.blocked_stream_ms),
        }
        return {
            name: max(0.0, ms - (between or 0.0))
            for name, (ms, between) in found.items()
            if ms is not None
        }

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "graph_slope_ms": self.call.graph_slope_ms,
            "blocked_stream_ms": self.call.blocked_stream_ms,
            "empty_kernel_ms": self.empty_ms,
            "empty_graph_slope_ms": self.empty.graph_slope_ms,
            "empty_blocked_stream_ms": self.empty.blocked_stream_ms,
        }


def slack_ms(cross_ms: float) -> float:
    """Return by how much a clock may differ from one that says `cross_ms`."""
    return max(SLACK_MS, SLACK_FRAC * cross_ms)


def agreement(primary_ms: float, own_ms: Mapping[str, float]) -> dict[str, str]:
    """Return per clock `agrees`, `claim_longer` or `claim_shorter`: how the primary's compares.

    `claim_longer` is no fault: the primary's caches are cold, a graph's short calls find them warm.
    """
    return {name: _compare(primary_ms, ms) for name, ms in own_ms.items()}


def understated_by(primary_ms: float, own_ms: Mapping[str, float]) -> float | None:
    """Return what a claim should have been where every clock beside it saw more; None: it stands.

    Both clocks count launches' boundaries and neighbours' memory traffic, of which only a part is
    known and taken off: they err long. So one that bears the claim out is enough, and of two that
    do not the shorter is the better figure.
    """
    if not own_ms or any(_compare(primary_ms, ms) != "claim_shorter" for ms in own_ms.values()):
        return None
    return min(own_ms.values())


def skips_seen_values(claimed_ms: float, fresh_ms: float, n_sets: int) -> bool:
    """Whether calls on new values take so much longer that the claim must be of repeated ones.

    Args:
        claimed_ms: a call, as it was claimed.
        fresh_ms: a call of a batch in which all values were new.
        n_sets: calls of that batch.
    """
    return claimed_ms < FRESH_FRAC * (fresh_ms - FRESH_HAND_OVER_MS / n_sets)


def leaves_gaps(span_ms: float, busy_ms: float | None) -> bool:
    """Whether a call waited for launches.

    Args:
        span_ms: from its first start to its last end.
        busy_ms: how much of that something ran; None: nobody knows.
    """
    return busy_ms is None or span_ms > GAP_FRAC * busy_ms


def is_launch_bound(ms: float) -> bool:
    """Whether a ratio of this time to another says no more than how often something is launched."""
    return ms < LAUNCH_BOUND_MS


def _compare(primary_ms: float, cross_ms: float) -> str:
    if abs(primary_ms - cross_ms) <= slack_ms(cross_ms):
        return "agrees"
    return "claim_longer" if primary_ms > cross_ms else "claim_shorter"
