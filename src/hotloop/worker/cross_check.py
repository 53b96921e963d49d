"""Cross-checks of a final timing: what else has to agree before a ratio is claimed.

The figure that is reported may be too long, never too short. A replay is held against the judge's
wall clock or, where its calls are short, against two more clocks of its own process; a candidate's
process against batches in which no value was seen before; and nothing is under the physics floor.
Where a clock saw more than was claimed its figure stands, and no ratio is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hotloop.worker.claims import number_or_none
from hotloop.worker.performance import WALL, CandidateTimer, Timing
from hotloop.worker.persisting_l2 import PersistingL2, persisting_l2
from hotloop.worker.timing_rules import (
    SHORT_MS,
    ClockPair,
    CrossReading,
    agreement,
    is_launch_bound,
    skips_seen_values,
    understated_by,
)

TRIES = 2


def may_claim(timer: CandidateTimer, candidate: Timing, *, mode: str) -> bool:
    """Whether a ratio to this final timing may be claimed; its figures are corrected in place.

    Args:
        timer: of the process that was timed.
        candidate: its side of the interleaved session.
        mode: `replay` or `host_path`; the latter's claims are for `final.stands_corrected`.

    Raises:
        Failed: an output was wrong, or the time is under the physics floor.
    """
    candidate.checks["launch_bound"] = is_launch_bound(candidate.median_ms)
    if persisting_l2() is PersistingL2.REFUSED:
        candidate.checks["persisting_l2"] = "not controlled"
    if mode == "host_path":
        fresh_ms = timer.fresh_batch_ms(candidate.median_ms)
        check_fresh(candidate, fresh_ms, timer.n_sets)
    elif candidate.median_ms < SHORT_MS:
        check_short(candidate, lambda: read_cross(timer.on_fresh_sets({"op": "cross"})))
    else:
        timer.wall_check(candidate)
    timer.check_floor(candidate)
    return candidate.timer != WALL and not candidate.doubts


def check_fresh(candidate: Timing, fresh_ms: float, n_sets: int) -> None:
    """Hold a claim against calls on values never seen before; theirs may replace it."""
    claimed_ms = candidate.median_ms
    candidate.checks["fresh_batch_ms"] = fresh_ms
    if skips_seen_values(claimed_ms, fresh_ms, n_sets):
        candidate.samples, candidate.timer = [fresh_ms], WALL
        candidate.doubts.append(
            f"{claimed_ms:.5f} ms a call was claimed, calls on new values take {fresh_ms:.5f} ms"
        )


def check_short(candidate: Timing, read: Callable[[], CrossReading]) -> None:
    """Hold a short call's figure against what other clocks read; theirs may replace it."""
    claimed_ms = candidate.median_ms
    for _ in range(TRIES):
        reading = read()
        longer_ms = understated_by(claimed_ms, reading.own())
        if longer_ms is None:
            break
    found = agreement(claimed_ms, reading.own())
    candidate.checks["clocks"] = reading.to_json() | {"claimed_ms": claimed_ms, "found": found}
    if longer_ms is not None:
        candidate.samples, candidate.timer = [longer_ms], WALL
        candidate.doubts.append(
            f"CUPTI says {claimed_ms:.5f} ms a call, other clocks {longer_ms:.5f} ms"
        )


def read_cross(answer: Mapping[str, Any]) -> CrossReading:
    """Read what `cross_clock.cross_times` returned; nothing is taken off for an unknown launch."""
    empty_ms = number_or_none(answer, "empty_ms")
    empty = ClockPair(None, None) if empty_ms is None else _pair(answer, "empty_")
    return CrossReading(call=_pair(answer, ""), empty=empty, empty_ms=empty_ms or 0.0)


def _pair(answer: Mapping[str, Any], prefix: str) -> ClockPair:
    slope = number_or_none(answer, f"{prefix}graph_slope_ms")
    return ClockPair(slope, number_or_none(answer, f"{prefix}blocked_stream_ms"))
