"""CallCosts: what the model calls of a run have cost, over all its sessions.

The last note of an attempt counts: it has the sum of all sendings of its calls. A call that was cut
and sent again may have been paid twice; one that was answered and comes from the journal in a later
session is noted again and counted once. What a source does not say stays unknown: it is never 0.

The call for ideas belongs to no attempt. Its generator notes what each sending cost, once, when it
ends; those notes are summed here and stand under attempt 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from hotloop.core import kill_points
from hotloop.core.attempt import Spent
from hotloop.core.model import add_known
from hotloop.core.protocols import Store
from hotloop.core.statistics import median

KIND = "call_cost"
"""The kind of its notes: `attempt`, `calls`, `tokens`, `usd`, `call_s`; where the attempt's calls
were sent more than once also `sending`, the last one's part with the same fields."""
IDEAS_KINDS = ("ideas", "ideas_failed")
"""Notes on the call for ideas, with `cost`; journals without it charged the call to a draft."""
IDEAS_ATTEMPT = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """Tokens or dollars of all calls."""

    known: float = 0
    """The sum of what is known."""
    unknown: int = 0
    """Calls of attempts that did not say what they cost."""
    typical: float = 0
    """The median of an attempt that was called for and said what it cost; 0 before the first."""

    @property
    def exact(self) -> float | None:
        """The sum; None when a part of it is unknown."""
        return None if self.unknown else self.known

    @property
    def expected(self) -> float:
        """The sum, with what is typical for each call that did not say what it cost."""
        return self.known + self.unknown * self.typical


class CallCosts:
    """Sums costs by attempt, in the journal and in memory."""

    def __init__(self, store: Store) -> None:
        """Take up what earlier sessions noted."""
        self._store = store
        self._spent: dict[int, Spent] = {}
        self._last: dict[int, Spent] = {}
        for note in store.notes(KIND):
            attempt_id = int(note["attempt"])
            self._spent[attempt_id] = _spent(note)
            self._last[attempt_id] = _spent(note.get("sending", note))
        self._noted_ideas = self._spent.get(IDEAS_ATTEMPT, Spent())
        self._spent[IDEAS_ATTEMPT] = self._ideas()

    def add(self, attempt_id: int, sending: Spent) -> None:
        """Write down what an attempt cost, with what it cost before, and any ideas since.

        A crash after the note has the same answer noted again: that adds nothing.
        """
        self._note_ideas()
        if not sending.calls:
            return
        total = sending
        note: dict[str, Any] = {"attempt": attempt_id}
        if attempt_id in self._spent:
            total = self._spent[attempt_id]
            if not _is_same(self._last[attempt_id], sending):
                total = _sum(total, sending)
            note["sending"] = _fields(sending)
        kill_points.reach("before-cost")
        self._store.note(KIND, {**note, **_fields(total)})
        kill_points.reach("after-cost")
        self._spent[attempt_id] = total
        self._last[attempt_id] = sending

    def _note_ideas(self) -> None:
        spent = self._with_ideas()[IDEAS_ATTEMPT]
        if spent != self._noted_ideas:
            self._store.note(KIND, {"attempt": IDEAS_ATTEMPT, **_fields(spent)})
            self._noted_ideas = spent

    def _with_ideas(self) -> Mapping[int, Spent]:
        """Return what was spent, with what the call for ideas has cost up to now."""
        self._spent[IDEAS_ATTEMPT] = self._ideas()
        return self._spent

    def _ideas(self) -> Spent:
        notes = [note for kind in IDEAS_KINDS for note in self._store.notes(kind)]
        return reduce(_sum, (_spent(note["cost"]) for note in notes if "cost" in note), Spent())

    @property
    def calls(self) -> int:
        """Model calls of all attempts, and for ideas."""
        return sum(spent.calls for spent in self._with_ideas().values())

    def tokens(self) -> Total:
        """Return prompt and completion tokens, reasoning included."""
        return _total((s.calls, s.tokens) for s in self._with_ideas().values())

    def usd(self) -> Total:
        """Return dollars."""
        return _total((s.calls, s.usd) for s in self._with_ideas().values())


def _total(values: Iterable[tuple[int, float | None]]) -> Total:
    listed = [(calls, value) for calls, value in values if calls]
    known = [value for _, value in listed if value is not None]
    return Total(
        known=sum(known),
        unknown=sum(calls for calls, value in listed if value is None),
        typical=median(known) if known else 0,
    )


def _is_same(earlier: Spent, later: Spent) -> bool:
    # An answer has its counts, or at least its seconds, in the journal, so they come back as they
    # were. Two calls that were cut without a word look alike and are two.
    return earlier == later and (later.tokens is not None or later.call_s > 0)


def _sum(a: Spent, b: Spent) -> Spent:
    return Spent(
        calls=a.calls + b.calls,
        tokens=add_known(a.tokens, b.tokens),
        usd=add_known(a.usd, b.usd),
        call_s=a.call_s + b.call_s,
    )


def _spent(note: Mapping[str, Any]) -> Spent:
    return Spent(calls=note["calls"], tokens=note["tokens"], usd=note["usd"], call_s=note["call_s"])


def _fields(spent: Spent) -> dict[str, Any]:
    return {
        "calls": spent.calls,
        "tokens": spent.tokens,
        "usd": spent.usd,
        "call_s": spent.call_s,
    }
