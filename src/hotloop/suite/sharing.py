"""Who gets the time that other problems of a suite left over.

Each problem has its share first. What runs did not use (they ended early: nothing left to try, a
limit of calls reached, skipped) is granted in slices to runs that ended because their wall clock
was spent, best expected gain first. The sum of what is spent and what is promised never exceeds
problems x share. Other limits (calls, tokens, dollars) stay as they are.

    expected gain of a slice
        no verified kernel yet   2, halved with each slice that it had already
        else                     head-room x trend, at most 1

Head-room is 1 - roofline share of the best kernel; trend is by how much the last attempts improved
it, as a share. Pure: it reads no clock and no file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotloop.core.attempt import Attempt
from hotloop.engine import StopReason
from hotloop.suite.standing import WAITING, Standing, State

SLICE_FRAC = 0.5
"""Share of a problem's share that is granted at a time: a run that goes on loads its problem again,
which takes minutes of a GPU for some, so that many small slices would go into that."""

MIN_SLICE_FRAC = 0.1
"""Less than this is not granted: the final tier alone needs about as much."""

TREND_ATTEMPTS = 8
"""Attempts with a verdict that the trend is taken over."""

MIN_TREND = 0.05
"""A run that has stood still may still have an idea: it comes after all that moved."""

MIN_HEADROOM = 0.05
"""A kernel this close to the roofline is done: ceilings are known to a few per cent only."""

UNSOLVED_GAIN = 2.0
"""More than any other's, twice: a second share may solve it. After that, being slow may be worth
more than being wrong once more."""

UNKNOWN_HEADROOM = 0.5
"""Where no roofline share is known (on a CPU, or without measured ceilings)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What one problem has, and what more could bring."""

    name: str
    spent_s: float
    limit_s: float
    """Its share and what it was granted so far."""
    is_over: bool
    """Whether nothing more is spent under that limit."""
    gain: float
    """Expected of a slice; 0 where more time cannot help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A larger limit for one run."""

    name: str
    limit_s: float


def claim_of(standing: Standing, *, share_s: float, granted_s: float, slices: int) -> Claim:
    """Return the claim of a problem that nobody runs now.

    Args:
        standing: where it stands.
        share_s: the share of each problem.
        granted_s: what it has been granted beyond.
        slices: in how many grants.
    """
    result = standing.result
    is_over = standing.state in (State.DONE, State.SKIPPED)
    wants_time = standing.state is State.DONE and result is not None
    if wants_time and result is not None:
        wants_time = result.reason is StopReason.WALL
    return Claim(
        name=standing.member.name,
        spent_s=0.0 if result is None else result.spent_s,
        limit_s=share_s + granted_s,
        is_over=is_over,
        gain=_gain(standing, slices) if wants_time else 0.0,
    )


def next_grant(claims: Sequence[Claim], share_s: float) -> Grant | None:
    """Return the next slice; None when nothing is left, or more time would help nobody.

    Args:
        claims: of all problems of the suite; those that are run now are not over.
        share_s: the share of each.
    """
    pool_s = free_s(claims, share_s)
    wanting = [claim for claim in claims if claim.is_over and claim.gain > 0]
    for claim in sorted(wanting, key=lambda claim: -claim.gain):  # equals in the suite's order
        unspent_s = max(0.0, claim.limit_s - claim.spent_s)  # in the pool, and promised again
        slice_s = min(SLICE_FRAC * share_s, pool_s - unspent_s)
        if slice_s >= MIN_SLICE_FRAC * share_s:
            return Grant(name=claim.name, limit_s=max(claim.spent_s, claim.limit_s) + slice_s)
    return None


def free_s(claims: Sequence[Claim], share_s: float) -> float:
    """Return the seconds that nobody has spent or was promised; negative when overspent."""
    taken_s = sum(c.spent_s if c.is_over else max(c.spent_s, c.limit_s) for c in claims)
    return share_s * len(claims) - taken_s


def had_their_share(standings: Sequence[Standing]) -> bool:
    """Whether no problem can still use its share in this sitting.

    One that the machine failed at keeps its share for the next sitting and holds up nobody.
    """
    return not any(row.state in WAITING or row.state is State.OPEN for row in standings)


def _gain(standing: Standing, slices: int) -> float:
    if not standing.passed:
        return float(UNSOLVED_GAIN * 0.5**slices)
    performance = None if standing.best is None else standing.best.performance
    share = None if performance is None else performance.roofline_frac
    headroom = UNKNOWN_HEADROOM if share is None else max(0.0, 1.0 - share)
    if headroom < MIN_HEADROOM:
        return 0.0
    attempts = () if standing.result is None else standing.result.attempts
    return min(1.0, headroom) * max(MIN_TREND, trend(attempts))


def trend(attempts: Sequence[Attempt]) -> float:
    """Return by how much the last attempts improved the best kernel: 0 (not at all) to 1.

    1 also where the first kernel came among them.
    """
    judged = [a for a in attempts if a.verdict is not None]
    judged.sort(key=lambda a: (a.finished_s or 0.0, a.id))
    before = _best(judged[:-TREND_ATTEMPTS])
    now = _best(judged)
    if now is None:
        return 0.0
    return 1.0 if before is None or before <= 0 else max(0.0, 1.0 - now / before)


def _best(attempts: Sequence[Attempt]) -> float | None:
    return min((a.objective for a in attempts if a.objective is not None), default=None)
