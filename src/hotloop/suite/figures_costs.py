"""What a run had spent when each of its attempts had its verdict.

The order is the journal's: a call counts from when it was asked for, so calls under way beside the
attempt are counted, as they are paid for, too. What a model did not say stays unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from hotloop.core.attempt import FREE_ACTIONS, Attempt, Spent
from hotloop.core.model import add_known
from hotloop.core.statistics import median
from hotloop.engine.costs import IDEAS_KINDS, KIND
from hotloop.store.reader import RunReader
from hotloop.verify.outside_notes import VERDICT

AXES = ("time_s", "calls", "tokens", "usd")
"""What a budget is counted in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paid:
    """What a run had spent at one moment. Unknown is None, never 0."""

    time_s: float | None = 0.0
    """Of the budget's clock, which stands while only answers from outside are awaited; unknown
    where the judge was outside too, for then it says nothing of what a kernel took."""
    calls: int = 0
    """Model calls, the one for ideas and those under way included."""
    tokens: int | None = 0
    usd: float | None = 0.0


def paid_when_finished(reader: RunReader) -> dict[int, Paid]:
    """Return for each attempt with a verdict what the run had spent by then."""
    attempts = {attempt.id: attempt for attempt in reader.attempts()}
    costs = _costs(reader, attempts)
    asked: set[int] = set()
    total = costs[0]
    found: dict[int, Paid] = {}
    is_outside = any(event.kind == VERDICT for event in reader.events())
    for kind, attempt_id in _order(reader):
        if kind == "proposed":
            if attempt_id not in asked:
                asked.add(attempt_id)
                total = _sum(total, costs[attempt_id])
            continue
        found[attempt_id] = Paid(
            time_s=None if is_outside else attempts[attempt_id].finished_s,
            calls=total.calls,
            tokens=total.tokens,
            usd=total.usd,
        )
    return found


def to_reach(reached: Sequence[Paid | None]) -> dict[str, Any]:
    """Return what it took to reach something, over all problems of a group.

    Args:
        reached: for each problem what was spent by then; None where it was never reached.

    Returns:
        For each axis the median of what is known, how many are known and unknown, and how many
        problems never came there: these are in no median.
    """
    there = [paid for paid in reached if paid is not None]
    return {axis: _over(axis, there, len(reached) - len(there)) for axis in AXES}


def _over(axis: str, there: Sequence[Paid], never: int) -> dict[str, Any]:
    values = [getattr(paid, axis) for paid in there]
    known = [value for value in values if value is not None]
    return {
        "median": median(known) if known else None,
        "most": max(known) if known else None,
        "known": len(known),
        "unknown": len(values) - len(known),
        "never": never,
    }


def _order(reader: RunReader) -> list[tuple[str, int]]:
    return [
        (event.kind, int(event.payload["attempt"]["id"]))
        for event in reader.events()
        if event.kind in ("proposed", "concluded")
    ]


def _costs(reader: RunReader, attempts: Mapping[int, Attempt]) -> dict[int, Spent]:
    """Return what each attempt cost; 0 stands for the call for ideas."""
    ideas = (note["cost"] for kind in IDEAS_KINDS for note in reader.notes(kind) if "cost" in note)
    costs = {n: _unsaid(attempt) for n, attempt in attempts.items()}
    costs |= {int(note["attempt"]): _spent(note) for note in reader.notes(KIND)}
    costs[0] = _total(_spent(cost) for cost in ideas)
    return costs


def _unsaid(attempt: Attempt) -> Spent:
    """Return the cost of an attempt that no note is of: nothing, or one call that said nothing."""
    if attempt.action in FREE_ACTIONS:
        return Spent()
    return Spent(calls=1, tokens=None, usd=None)


def _spent(note: Mapping[str, Any]) -> Spent:
    return Spent(calls=note["calls"], tokens=note["tokens"], usd=note["usd"], call_s=note["call_s"])


def _total(spent: Iterable[Spent]) -> Spent:
    return reduce(_sum, spent, Spent())


def _sum(a: Spent, b: Spent) -> Spent:
    return Spent(
        calls=a.calls + b.calls,
        tokens=add_known(a.tokens, b.tokens),
        usd=add_known(a.usd, b.usd),
        call_s=a.call_s + b.call_s,
    )
