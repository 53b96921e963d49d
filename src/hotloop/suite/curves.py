"""Solve rate and best speed-up as functions of what was spent on each problem.

Step functions, as lists of [spent, value]: the value holds from there to the next point. Every
problem of the group counts at each point, solved or not; one without a kernel yet counts as 1.0 in
the speed-up. A kernel stands where it was found, not where its final verdict came. A kernel for
which it is unknown what was spent stands nowhere: its problem counts as not solved on that curve,
and is named. The end of a curve of the final tier is the figure in the tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hotloop.core.attempt import Attempt
from hotloop.core.statistics import geometric_mean
from hotloop.suite.figures_correct import confirmed_attempts, fast_tier_attempts
from hotloop.suite.figures_rows import PASSED, RunRow
from hotloop.suite.figures_speed import BASELINES, COMPILE, EAGER, State, compare

AXES = ("time_s", "calls", "tokens")
"""Budgets that a curve is drawn over: seconds of the budget's clock, model calls, tokens."""
Points = list[list[float]] | None
"""None where kernels were found and for none of them it is known what was spent."""


@dataclass(frozen=True, slots=True)
class _Step:
    """From here on a problem has this value."""

    at: float | None
    """What had been spent; None when unknown."""
    value: float


Steps = Mapping[str, Sequence[_Step]]
"""By problem; a problem without a correct kernel has none."""


def curves(rows: Sequence[RunRow]) -> dict[str, Any]:
    """Return the curves of a group of problems of one device, by axis of the budget.

    Returns:
        For `time_s`, `calls` and `tokens`: `solve_rate` (0 to 1) and `speedup` (by baseline) of
        kernels that passed the final tier; `fast_tier_solve_rate` and `fast_tier_speedup` (over
        the faster of eager and `torch.compile` at set-up) of those that passed the fast tier and
        failed no final one; `unknown`: problems with a kernel that no spending is known for. On
        `cpu` there is the solve rate of the fast tier alone.
    """
    return {axis: _axis(rows, axis) for axis in AXES}


def _axis(rows: Sequence[RunRow], axis: str) -> dict[str, Any]:
    final = {row.name: _steps(row, confirmed_attempts(row), axis) for row in rows}
    fast = {row.name: _steps(row, fast_tier_attempts(row), axis) for row in rows}
    drawn: dict[str, Any] = {
        "problems": len(rows),
        "fast_tier_solve_rate": _draw(fast, 0.0, _mean),
        "unknown": [name for name, steps in fast.items() if any(s.at is None for s in steps)],
    }
    if any(row.column.device == "cpu" for row in rows):
        return drawn
    ratios = {row.name: _fast_ratios(row, axis) for row in rows}
    return drawn | {
        "solve_rate": _draw(final, 0.0, _mean),
        "speedup": {name: _speedup(rows, name, axis) for name in BASELINES},
        "fast_tier_speedup": _draw(ratios, 1.0, geometric_mean),
    }


def _steps(row: RunRow, attempts: Sequence[Attempt], axis: str) -> list[_Step]:
    return [_Step(_spent(row, attempt, axis), 1.0) for attempt in attempts]


def _spent(row: RunRow, attempt: Attempt, axis: str) -> float | None:
    paid = row.paid.get(attempt.id)
    return None if paid is None else getattr(paid, axis)


def _speedup(rows: Sequence[RunRow], baseline: str, axis: str) -> Points:
    mine = [row for row in rows if compare(row, baseline).state is not State.WITHOUT]
    return _draw({r.name: _ratios(r, baseline, axis) for r in mine}, 1.0, geometric_mean)


def _ratios(row: RunRow, baseline: str, axis: str) -> list[_Step]:
    """Return the ratio of the fastest kernel so far, whenever it changes."""
    steps: list[_Step] = []
    least_ms = math.inf
    for at, attempt in _by_spending(row, confirmed_attempts(row), axis):
        verdict = row.finals[attempt.candidate_id or ""]
        latency_ms = verdict.performance.latency_ms if verdict.performance else math.inf
        if not steps or latency_ms < least_ms:
            least_ms = latency_ms
            so_far = replace(row, status=PASSED, best=attempt, final=verdict)
            steps.append(_Step(at, compare(so_far, baseline).ratio))
    return steps


def _fast_ratios(row: RunRow, axis: str) -> list[_Step]:
    baselines_ms = {} if row.info is None else row.info.baselines_ms
    known = [baselines_ms[name] for name in (EAGER, COMPILE) if name in baselines_ms]
    steps: list[_Step] = []
    least_ms = math.inf
    for at, attempt in _by_spending(row, fast_tier_attempts(row), axis):
        verdict = attempt.verdict
        if not known or verdict is None or verdict.performance is None:
            continue
        if verdict.performance.latency_ms < least_ms:
            least_ms = verdict.performance.latency_ms
            steps.append(_Step(at, min(known) / least_ms))
    return steps


def _by_spending(
    row: RunRow, attempts: Sequence[Attempt], axis: str
) -> list[tuple[float | None, Attempt]]:
    placed = [(_spent(row, attempt, axis), attempt) for attempt in attempts]
    return sorted(placed, key=lambda item: (math.inf if item[0] is None else item[0], item[1].id))


def _draw(steps: Steps, start: float, average: Callable[[Sequence[float]], float]) -> Points:
    """Return the average over all problems as a step function that begins at nothing spent."""
    if not steps:
        return []
    every = [step.at for listed in steps.values() for step in listed]
    if every and all(at is None for at in every):
        return None
    now = dict.fromkeys(steps, start)
    ordered = sorted(
        (step.at, name, step.value)
        for name, listed in steps.items()
        for step in listed
        if step.at is not None
    )
    points = [[0.0, average(list(now.values()))]]
    for at, name, value in ordered:
        if now[name] == value:
            continue
        now[name] = value
        point = [float(at), average(list(now.values()))]
        if points[-1][0] == point[0]:
            points[-1] = point
        else:
            points.append(point)
    return points


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
