"""The attempts of a run as a tree: what came of what, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from hotloop.core.attempt import Attempt
from hotloop.core.verdict import Verdict
from hotloop.report import display
from hotloop.report.page import CPU, ProblemPage

TOLD_CHARACTERS = 140
DEEPEST = 12
"""Levels that are indented; what is deeper stands as deep as that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """One attempt as a row."""

    indent: str
    """What draws the tree before the number."""
    id: int
    action: str
    parents: str
    status: str
    passed: bool | None
    """None while there is no verdict."""
    tier: str
    time: str
    speedup: str
    after: str
    """What the budget's clock said when it had its verdict."""
    told: str
    """What it was to change, or why it failed."""
    is_best: bool
    leads_to_best: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """The rows of one problem."""

    stations: tuple[Station, ...]
    left_out: int = 0
    """Attempts that are not shown, for there are too many."""


def lineage(problem: ProblemPage, limit: int) -> Lineage:
    """Return the attempts depth first, each under its first parent.

    Args:
        problem: whose attempts; parents that the journal does not have count as none.
        limit: rows at most; those that lead to the best attempt are always among them.
    """
    attempts = {attempt.id: attempt for attempt in problem.attempts}
    path = way_to_best(attempts, problem.best)
    order = by_descent(attempts)
    kept = order
    if len(order) > limit:
        others = [item for item in order if item[0] not in path][: max(0, limit - len(path))]
        shown = path | {attempt_id for attempt_id, _ in others}
        kept = [item for item in order if item[0] in shown]
    stations = tuple(station(problem, attempts[n], depth, path) for n, depth in kept)
    return Lineage(stations=stations, left_out=len(order) - len(kept))


def way_to_best(attempts: Mapping[int, Attempt], best: Attempt | None) -> set[int]:
    """Return the best attempt and all that it comes of."""
    found: set[int] = set()
    open_ids = [] if best is None else [best.id]
    while open_ids:
        attempt_id = open_ids.pop()
        if attempt_id in attempts and attempt_id not in found:
            found.add(attempt_id)
            open_ids += attempts[attempt_id].parents
    return found


def by_descent(attempts: Mapping[int, Attempt]) -> list[tuple[int, int]]:
    """Return each attempt once, depth first, with its depth; those of a circle at the top."""
    children: dict[int | None, list[int]] = {}
    for attempt_id, attempt in sorted(attempts.items()):
        parent = next((p for p in attempt.parents if p in attempts), None)
        children.setdefault(parent, []).append(attempt_id)
    order: list[tuple[int, int]] = []
    seen: set[int] = set()
    for root in (*children.get(None, ()), *sorted(attempts)):
        stack = [(root, 0)]
        while stack:
            attempt_id, depth = stack.pop()
            if attempt_id in seen:
                continue
            seen.add(attempt_id)
            order.append((attempt_id, depth))
            stack += [(child, depth + 1) for child in reversed(children.get(attempt_id, ()))]
    return order


def verdict_of(problem: ProblemPage, attempt: Attempt) -> Verdict | None:
    """Return an attempt's verdict: the final tier's where there is one."""
    return problem.finals.get(attempt.candidate_id or "") or attempt.verdict


def status_of(problem: ProblemPage, attempt: Attempt) -> str:
    """Return an attempt's status, also where it has no verdict."""
    verdict = verdict_of(problem, attempt)
    return problem.open_status if verdict is None else verdict.status.value


def station(problem: ProblemPage, attempt: Attempt, depth: int, path: Set[int]) -> Station:
    """Return one attempt as a row; `path` is the way to the best."""
    verdict = verdict_of(problem, attempt)
    time, speedup = _measured(attempt, verdict, problem.device)
    return Station(
        indent="" if not depth else "\u00a0\u00a0" * (min(depth, DEEPEST) - 1) + "└ ",
        id=attempt.id,
        action=action_of(attempt),
        parents=", ".join(map(str, attempt.parents)),
        status=status_of(problem, attempt),
        passed=None if verdict is None else verdict.passed,
        tier="" if verdict is None else verdict.tier.value,
        time=time,
        speedup=speedup,
        after="" if attempt.finished_s is None else display.seconds(attempt.finished_s),
        told=told_of(attempt, verdict),
        is_best=problem.best is not None and attempt.id == problem.best.id,
        leads_to_best=attempt.id in path,
    )


def _measured(attempt: Attempt, verdict: Verdict | None, device: str) -> tuple[str, str]:
    """Return time and speed-up; on a CPU, where nothing is timed, the static cost and nothing."""
    if device == CPU:
        return ("" if attempt.objective is None else f"{attempt.objective:.4g}"), ""
    if verdict is None or not verdict.passed:
        return "", ""
    performance = verdict.performance
    if performance is None:
        return display.NOT_MEASURED, display.NOT_MEASURED
    return display.ms(performance.latency_ms), display.least_speedup(performance)


def action_of(attempt: Attempt) -> str:
    """Return the word for what an attempt is."""
    return display.one_line(attempt.action, limit=24)


def told_of(attempt: Attempt, verdict: Verdict | None) -> str:
    """Return why an attempt failed, or what it was to change."""
    if verdict is not None and verdict.evidence is not None:
        told = f"{verdict.evidence.kind}: {verdict.evidence.message}"
        return display.one_line(told, limit=TOLD_CHARACTERS)
    if attempt.asked is not None:
        told = attempt.asked.idea or (attempt.asked.move or "").replace("_", " ")
        return display.one_line(told, limit=TOLD_CHARACTERS)
    values = ", ".join(f"{name}={value}" for name, value in attempt.point.items())
    return display.one_line(values, limit=TOLD_CHARACTERS)


def failures_by_class(problems: Sequence[ProblemPage]) -> dict[str, dict[str, int]]:
    """Return how many failed verdicts, of both tiers, each class of operators had, by status."""
    found: dict[str, dict[str, int]] = {}
    for problem in problems:
        fast = [a.verdict for a in problem.attempts if a.verdict is not None]
        for verdict in (*fast, *problem.finals.values()):
            if not verdict.passed:
                mine = found.setdefault(f"level {problem.level}: {problem.operator_class}", {})
                mine[verdict.status.value] = mine.get(verdict.status.value, 0) + 1
    return dict(sorted(found.items()))
