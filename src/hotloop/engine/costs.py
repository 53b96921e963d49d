"""CallCosts: what the model calls of a run have cost, over all its sessions.

One note for each attempt; the last one of an attempt counts, so an attempt that is written again in
a later session is not counted twice. What a source does not say stays unknown: it is never 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hotloop.core.attempt import Spent
from hotloop.core.protocols import Store
from hotloop.core.statistics import median

KIND = "call_cost"
"""The kind of its notes: `attempt`, `calls`, `tokens`, `usd`, `call_s`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """Tokens or dollars of all calls."""

    known: float = 0
    """The sum of what is known."""
    is_complete: bool = True
    """Whether every call said what it cost."""
    typical: float = 0
    """The median of an attempt that was called for and said what it cost; 0 before the first."""

    @property
    def exact(self) -> float | None:
        """The sum; None when a part of it is unknown."""
        return self.known if self.is_complete else None


class CallCosts:
    """Sums costs by attempt, in the journal and in memory."""

    def __init__(self, store: Store) -> None:
        """Take up what earlier sessions noted."""
        self._store = store
        self._spent: dict[int, Spent] = {}
        for note in store.notes(KIND):
            self._spent[int(note["attempt"])] = Spent(
                calls=note["calls"], tokens=note["tokens"], usd=note["usd"], call_s=note["call_s"]
            )

    def add(self, attempt_id: int, spent: Spent) -> None:
        """Write down what an attempt cost, in place of what was noted of it before."""
        self._store.note(
            KIND,
            {
                "attempt": attempt_id,
                "calls": spent.calls,
                "tokens": spent.tokens,
                "usd": spent.usd,
                "call_s": spent.call_s,
            },
        )
        self._spent[attempt_id] = spent

    @property
    def calls(self) -> int:
        """Model calls of all attempts."""
        return sum(spent.calls for spent in self._spent.values())

    def tokens(self) -> Total:
        """Return prompt and completion tokens, reasoning included."""
        return _total(s.tokens for s in self._spent.values() if s.calls)

    def usd(self) -> Total:
        """Return dollars."""
        return _total(s.usd for s in self._spent.values() if s.calls)


def _total(values: Iterable[float | None]) -> Total:
    listed = list(values)
    known = [value for value in listed if value is not None]
    return Total(
        known=sum(known),
        is_complete=len(known) == len(listed),
        typical=median(known) if known else 0,
    )
