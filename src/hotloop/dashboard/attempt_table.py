"""The table of a run's attempts: filtered, ordered and cut into pages on the server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from hotloop.report.lineage import Station

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


def attempt_table(stations: Sequence[Station], filters: Filters) -> AttemptTable:
    """Return the page that the filters ask for; the last one where there are not so many.

    Args:
        stations: all attempts, by descent.
        filters: what is asked for.
    """
    found = [s for s in stations if _fits(s, filters)]
    if filters.order != "tree":
        found.sort(key=lambda s: s.id, reverse=filters.order == "newest")
    pages = max(1, -(-len(found) // PER_PAGE))
    page = min(filters.page, pages)
    return AttemptTable(
        filters=filters,
        rows=found[(page - 1) * PER_PAGE : page * PER_PAGE],
        matching=len(found),
        total=len(stations),
        pages=pages,
        statuses=sorted(Counter(s.status for s in stations).items()),
        actions=sorted({s.action for s in stations}),
    )


def _fits(station: Station, filters: Filters) -> bool:
    if filters.status and station.status != filters.status:
        return False
    if filters.action and station.action != filters.action:
        return False
    words = f"{station.id} {station.action} {station.status} {station.told}".lower()
    return all(word in words for word in filters.text.lower().split())
