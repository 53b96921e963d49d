"""The table of a run's attempts: filtered, ordered and cut into pages on the server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from hotloop.core.attempt import Attempt
from hotloop.report.lineage import (
    Station,
    action_of,
    by_descent,
    station,
    status_of,
    told_of,
    verdict_of,
    way_to_best,
)
from hotloop.report.page import ProblemPage

PER_PAGE = 100
ORDERS = {"newest": "newest first", "oldest": "oldest first", "tree": "by descent"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What of the attempts is asked for. Unknown values ask for nothing special."""

    status: str = ""
    action: str = ""
    text: str = ""
    """What their words must hold, without regard to case."""
    order: str = "newest"
    page: int = 1

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> Filters:
        """Return the filters of a URL."""
        order = query.get("order", "")
        number = query.get("page", "1")
        return cls(
            status=query.get("status", "")[:60],
            action=query.get("action", "")[:60],
            text=query.get("text", "")[:200],
            order=order if order in ORDERS else "newest",
            page=max(1, int(number)) if number.isascii() and number.isdigit() else 1,
        )

    def link(self, **changed: object) -> str:
        """Return the query of the same filters with some changed."""
        values = {name: getattr(self, name) for name in ("status", "action", "text", "order")}
        values |= {"page": 1, **changed}
        plain = {"order": "newest", "page": 1}
        kept = {n: v for n, v in values.items() if v not in ("", plain.get(n))}
        return f"?{urlencode(kept)}" if kept else "?"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptTable:
    """One page of the table."""

    filters: Filters
    rows: Sequence[Station]
    matching: int
    total: int
    pages: int
    statuses: Sequence[tuple[str, int]]
    """What there is to filter by, with how many attempts have it."""
    actions: Sequence[str]


def attempt_table(problem: ProblemPage, filters: Filters) -> AttemptTable:
    """Return the page that the filters ask for; the last one where there are not so many.

    Rows are made for what is shown and no more: a run may have thousands.
    """
    attempts = {attempt.id: attempt for attempt in problem.attempts}
    statuses = {n: status_of(problem, a) for n, a in attempts.items()}
    found = [
        (number, depth)
        for number, depth in _in_order(attempts, filters.order)
        if _fits(attempts[number], statuses[number], problem, filters)
    ]
    pages = max(1, -(-len(found) // PER_PAGE))
    page = min(filters.page, pages)
    path = way_to_best(attempts, problem.best)
    shown = found[(page - 1) * PER_PAGE : page * PER_PAGE]
    return AttemptTable(
        filters=filters,
        rows=[station(problem, attempts[number], depth, path) for number, depth in shown],
        matching=len(found),
        total=len(attempts),
        pages=pages,
        statuses=sorted(Counter(statuses.values()).items()),
        actions=sorted({action_of(attempt) for attempt in attempts.values()}),
    )


def _in_order(attempts: Mapping[int, Attempt], order: str) -> Sequence[tuple[int, int]]:
    """Return the numbers with their depth in the tree, which is 0 in the other orders."""
    if order == "tree":
        return by_descent(attempts)
    return [(number, 0) for number in sorted(attempts, reverse=order == "newest")]


def _fits(attempt: Attempt, status: str, problem: ProblemPage, filters: Filters) -> bool:
    if filters.status and status != filters.status:
        return False
    if filters.action and action_of(attempt) != filters.action:
        return False
    wanted = filters.text.lower().split()
    if not wanted:
        return True
    told = told_of(attempt, verdict_of(problem, attempt))
    words = f"{attempt.id} {action_of(attempt)} {status} {told}".lower()
    return all(word in words for word in wanted)
