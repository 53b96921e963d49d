"""Turns: several runs share one GPU, and one judge at a time works on it.

First come, first served. What needs no GPU (a model's call, a compiler) needs no turn. Judges keep
what they loaded between their turns; where that cannot fit, the one that was idle for longest is
dropped and loads again at its next turn.

Time is counted as it passes: see `seat_use.py`. Thread-safe.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hotloop.errors import TurnGivenUp
from hotloop.verify.seat_use import SeatUse

POLL_S = 0.1
"""How often who waits looks whether it is to give up, or has waited long enough for room."""

KEPT_PER_IO = 6
"""An idle judge keeps, in units of the problem's inputs, parameters and outputs (`io_bytes`): two
sets of them that calls alternate between (2), timed inputs (1), and three known cases (3)."""

KEPT_FRAC = 0.5
"""Share of the GPU's memory that all judges may keep between their turns. The other half is for the
one whose turn it is: a final verification needs up to 9 x `io_bytes` at its peak, of which it keeps
6 (`worker/session.py`, `fresh_books`), and contexts and candidates need theirs."""


@dataclass(slots=True, kw_only=True, eq=False)
class Guest:
    """One run's judge on a GPU. Changed under the lock of its `Turns` only."""

    drop: Callable[[], None]
    """Ends the judge, from any thread; its next turn loads the problem again."""
    io_bytes: int = 0
    """Of the loaded problem; 0 until that is known."""
    holds_judge: bool = False
    load_s: float = 0.0
    """What its last load took."""
    loaded_at_s: float = 0.0
    """When that load ended."""
    used_s: float = 0.0
    """When its last turn ended."""
    drops: int = 0
    """How often its judge was dropped for others."""
    ready: set[str] = field(default_factory=set)
    """Candidates that are built and have not asked for a turn yet."""
    has_left: bool = False


@dataclass(slots=True, eq=False)
class Ticket:
    """One wait for a turn, and the turn."""

    guest: Guest
    since_s: float


class Turns:
    """Whose turn it is on one GPU, and what the GPU did."""

    def __init__(
        self, *, memory_bytes: int | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Let nobody in yet.

        Args:
            memory_bytes: of the GPU; None where it is unknown, or there is none: no judge is
                dropped before memory has run out.
            clock: monotonic seconds.
        """
        self._limit_bytes = None if memory_bytes is None else int(KEPT_FRAC * memory_bytes)
        self._clock = clock
        self._changed = threading.Condition()
        self._queue: list[Ticket] = []
        self._holder: Ticket | None = None
        self._guests: list[Guest] = []
        self._began_s = self._seen_s = clock()
        self._worked_s = self._idle_s = 0.0
        self._verdicts = 0

    def enter(self, drop: Callable[[], None]) -> Guest:
        """Let a run in; `drop` ends its judge."""
        guest = Guest(drop=drop)
        with self._changed:
            self._guests.append(guest)
        return guest

    def leave(self, guest: Guest) -> None:
        """Forget a run: whoever waits for its turn gives up. Idempotent."""
        with self._changed:
            self._account()
            guest.has_left = True
            self._guests = [other for other in self._guests if other is not guest]
            self._changed.notify_all()

    def loaded(self, guest: Guest, load_s: float) -> None:
        """A run's judge has just loaded its problem, in so many seconds."""
        with self._changed:
            guest.load_s, guest.loaded_at_s = load_s, self._clock()
            guest.holds_judge = True

    def ready(self, guest: Guest, candidate_id: str) -> None:
        """A candidate is built: from now on it waits for the GPU."""
        with self._changed:
            self._account()
            guest.ready.add(candidate_id)

    def not_ready(self, guest: Guest, candidate_id: str) -> None:
        """A candidate that was built is not to be verified: it waits no more."""
        with self._changed:
            self._account()
            guest.ready.discard(candidate_id)

    def wait(self, guest: Guest, candidate_id: str | None, given_up: Callable[[], bool]) -> Ticket:
        """Wait for the turn, and make room for what the run keeps on the GPU.

        Args:
            guest: whose turn it shall be.
            candidate_id: what is to be verified; None to load the problem.
            given_up: asked now and then; True ends the wait.

        Raises:
            TurnGivenUp: `given_up`, or the run has left.
        """
        with self._changed:
            self._account()
            ticket = Ticket(guest, self._clock())
            guest.ready.discard(candidate_id or "")
            self._queue.append(ticket)
            try:
                while not self._may_start(ticket):
                    if guest.has_left or given_up():
                        raise TurnGivenUp("the run was stopped while it waited for its turn")
                    self._changed.wait(POLL_S)
                self._account()
                self._holder = ticket
            finally:
                self._account()
                self._queue.remove(ticket)
                self._changed.notify_all()
        return ticket

    def end(self, ticket: Ticket, *, is_verdict: bool = False) -> None:
        """End a turn; nothing happens where it was taken back. Idempotent."""
        with self._changed:
            self._account()
            if self._holder is ticket:
                self._verdicts += is_verdict
                self._holder = None
                ticket.guest.used_s = self._clock()
                self._changed.notify_all()

    def take_back(self, guest: Guest) -> None:
        """End the turn of a judge that was given up, whatever its thread still waits for."""
        with self._changed:
            ticket = self._holder
        if ticket is not None and ticket.guest is guest:
            self.end(ticket)

    def has_turn(self, guest: Guest) -> bool:
        """Whether it is this run's turn."""
        with self._changed:
            return self._holder is not None and self._holder.guest is guest

    def make_room(self, guest: Guest) -> None:
        """Drop idle judges, the longest idle first, until all that is kept fits; in a turn only."""
        while (other := self._to_drop(guest)) is not None:
            self._drop(other)

    def clear(self, guest: Guest) -> bool:
        """Drop all judges but this one; in a turn only. Returns whether there were any."""
        others = [other for other in self._others(guest) if other.holds_judge]
        for other in others:
            self._drop(other)
        return bool(others)

    def use(self) -> SeatUse:
        """Return what the GPU did so far."""
        with self._changed:
            self._account()
            return SeatUse(
                worked_s=self._worked_s,
                idle_s=self._idle_s,
                wall_s=self._seen_s - self._began_s,
                verdicts=self._verdicts,
            )

    def _drop(self, guest: Guest) -> None:
        with self._changed:
            guest.holds_judge = False
            guest.drops += 1
        guest.drop()

    def _others(self, guest: Guest) -> list[Guest]:
        with self._changed:
            return [other for other in self._guests if other is not guest]

    def _to_drop(self, guest: Guest) -> Guest | None:
        with self._changed:
            if self._fits(guest):
                return None
            idle = [g for g in self._guests if g is not guest and g.holds_judge]
            return min(idle, key=lambda g: g.used_s, default=None)

    def _fits(self, guest: Guest) -> bool:
        if self._limit_bytes is None:
            return True
        kept = [g.io_bytes for g in self._guests if g is guest or g.holds_judge]
        return KEPT_PER_IO * sum(kept) <= self._limit_bytes

    def _may_start(self, ticket: Ticket) -> bool:
        if self._holder is not None:
            return False
        return next((t for t in self._queue if self._has_room(t)), None) is ticket

    def _has_room(self, ticket: Ticket) -> bool:
        """Whether it need not wait for memory.

        Dropping a judge costs it a load. Who would cause that waits as long as the load takes
        first, counted from when the other had loaded, and lets others pass: a judge that loads for
        5 s keeps its place for 5 s at least.
        """
        guest = ticket.guest
        if guest.holds_judge or self._fits(guest):
            return True
        now_s = self._clock()
        idle = [g for g in self._guests if g is not guest and g.holds_judge]
        # A judge that has just loaded had no chance to earn its load back while this one waited.
        return all(now_s - max(ticket.since_s, g.loaded_at_s) >= g.load_s for g in idle)

    def _account(self) -> None:
        """Add the time since the last change to what the GPU did in it."""
        now_s = self._clock()
        passed_s, self._seen_s = now_s - self._seen_s, now_s
        if self._holder is not None:
            self._worked_s += passed_s
        elif self._queue or any(guest.ready for guest in self._guests):
            self._idle_s += passed_s
