"""Rounds of several sides on one GPU, and one of them twice: the A/A control.

Sides take turns in one order, then in the reverse order (ABBA for two), a block of calls each. The
control is a baseline under a second name in the same rounds: it meets the same drift, the same
flush and the same neighbours, and its ratio to itself has to be 1. Where it is not, all is measured
again, once; after that no ratio of the session is believed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from hotloop.core.statistics import median, paired_speedup_interval
from hotloop.worker.performance import Timing
from hotloop.worker.timing_rules import Control

CONTROL = "control"
"""Name of the second side of the program that is timed against itself."""
TRIES = 2

Call = Callable[[], Any]
Rounds = dict[str, list[list[float]]]
Measured = tuple[dict[str, Timing], Rounds]
"""Per side what was timed, and its samples by rounds."""


def controlled(
    measure: Callable[[dict[str, Call]], Measured],
    calls: Mapping[str, Call],
    ms: Mapping[str, float],
) -> Measured:
    """Measure the candidate beside `calls`, one of them twice.

    The control's figure goes into the candidate's `Timing.checks`; where it did not hold, into its
    `Timing.doubts` too.

    Args:
        measure: interleaves the side `candidate` with the calls that it is given.
        calls: the baselines by name.
        ms: how long each takes. The quickest is the control: it is the cheapest, and the one that
            a speed-up is claimed over.

    Returns:
        What was measured last, without the control.
    """
    if not calls:
        return measure({})
    name = min(calls, key=lambda n: ms.get(n, math.inf))
    # Side by side, so that their turns lie as those of A and B do in ABBA.
    others = {n: call for n, call in calls.items() if n != name}
    doubled = {**others, name: calls[name], CONTROL: calls[name]}
    for number in range(1, TRIES + 1):
        sides, rounds = measure(doubled)
        control = control_of(name, rounds[name], rounds.pop(CONTROL), tries=number)
        sides.pop(CONTROL)
        if control.holds:
            break
    candidate = sides["candidate"]
    candidate.checks["control"] = control.to_json()
    if not control.holds:
        candidate.doubts.append(
            f"{name} timed against itself gave {control.ratio:.4f}, expected 1 within "
            f"{control.limit_frac:.3g}: no ratio of this session is believed"
        )
    return sides, rounds


def control_of(
    name: str, first: list[list[float]], second: list[list[float]], *, tries: int
) -> Control:
    """Return what one program's two sides say of the session, each given as samples by rounds."""
    above, below = (median([ms for block in side for ms in block]) for side in (first, second))
    low, high = paired_speedup_interval(list(zip(first, second, strict=True)))
    return Control(name, above / below, (low, high), min(above, below), tries)
