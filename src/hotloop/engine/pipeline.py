"""Pipeline: proposals on their way to the verifier, a few ahead of it.

Asks the strategy, has the candidate written and recorded, and hands it to a build lane. Without a
model: first in, first out, so a run is reproducible whichever build ends first. With one, calls are
kept under way beside it, kernels that a model wrote come before those that cost no call, and what
is built comes first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from hotloop.core.attempt import Action, Attempt, Proposal
from hotloop.core.candidate import Candidate
from hotloop.core.protocols import Strategy
from hotloop.engine.desk import Desk, proposal_of
from hotloop.engine.lanes import Build, Lanes
from hotloop.engine.outcomes import Outcomes
from hotloop.engine.result import StopReason
from hotloop.engine.session import Session
from hotloop.errors import BlobDamaged

MAX_PARKED = 32
"""Candidates that may await a verdict from elsewhere before nothing new is proposed: what is
proposed beyond them would be proposed without having learnt from any of them."""
MAX_PARKED_SWEEPS = 6
"""Sweeps that await a verdict from elsewhere at a time, beside a model: sweeps fill the time of a
judge that waits for calls, and a judge elsewhere is carried everything that is asked of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """An attempt that awaits its verification."""

    attempt: Attempt
    candidate: Candidate
    build: Build | None
    """None when the candidate needs no build: it was verified before, or is further ahead here."""
    was_called_for: bool
    """Whether a model wrote it."""

    @property
    def is_built(self) -> bool:
        """Whether its verification need not wait for a build."""
        return self.build is None or self.build.has_ended


class Pipeline:
    """A queue that fills itself: one attempt for the verifier and one for each lane."""

    def __init__(
        self,
        session: Session,
        strategy: Strategy,
        lanes: Lanes,
        *,
        desk: Desk,
        outcomes: Outcomes,
    ) -> None:
        """Make it empty; `restore` queues what earlier sessions left open."""
        self._session = session
        self._strategy = strategy
        self._lanes = lanes
        self._desk = desk
        self._outcomes = outcomes
        self._queue: list[Queued] = []
        self._proposed = 0
        self._written: deque[Attempt] = deque()
        self._unwritten: deque[Attempt] = deque()
        self._held: deque[Proposal] = deque()
        self._refusal: StopReason | None = None
        self._parked_sweeps = 0
        self.parked: dict[int, tuple[str, ...]] = {}
        """Attempts whose verdict is awaited from elsewhere, with the files to be answered."""

    def restore(self, earlier: Iterable[Attempt]) -> None:
        """Queue the open attempts of earlier sessions before anything new: first the written."""
        for attempt in earlier:
            self._proposed += 1
            if attempt.verdict is None:
                is_written = attempt.candidate_id is not None and self._is_readable(attempt)
                (self._written if is_written else self._unwritten).append(attempt)

    def head(self) -> Queued | None:
        """Fill up and return the next attempt to verify; None when nothing more comes for now.

        Raises:
            ProviderError: no model call can be made at all.
        """
        for script in self._desk.collect():
            self._submit(*script, was_called_for=True)
        self._unwritten.extend(self._desk.take_back())
        self._refusal = None
        while self._add():
            pass
        built = (queued for queued in self._queue if queued.is_built)
        if self._desk.asked and (first := next(built, None)) is not None:
            return first
        return self._queue[0] if self._queue else None

    def drain(self) -> list[Queued]:
        """Return all that is written and has no verdict yet, without having it built."""
        while self._written:
            attempt = self._written.popleft()
            self._queue.append(self._without_build(attempt))
        return list(self._queue)

    def remove(self, queued: Queued) -> None:
        """Drop an attempt: it has its verdict."""
        self._queue = [other for other in self._queue if other is not queued]

    def park(self, queued: Queued, waiting: tuple[str, ...]) -> None:
        """Set an attempt aside: it is verified elsewhere, and the next session asks again."""
        self.remove(queued)
        self.parked[queued.attempt.id] = waiting
        self._parked_sweeps += queued.attempt.action == Action.SWEEP

    def waiting(self) -> tuple[str, ...]:
        """Return the files that are to be answered from outside, each once."""
        files = [*self._desk.waiting.values(), *self.parked.values()]
        return tuple(dict.fromkeys(file for group in files for file in group))

    @property
    def is_waiting(self) -> bool:
        """Whether an answer or a verdict is awaited from outside."""
        return bool(self._desk.waiting or self.parked)

    def why_empty(self) -> StopReason:
        """Return why `head` has nothing more and no call is under way."""
        if self.is_waiting:
            return StopReason.WAITING
        wants_call = self._desk.asked or self._held or self._unwritten
        if self._refusal is not None and wants_call:
            return self._refusal
        return StopReason.CANDIDATES if self._is_full() else StopReason.EXHAUSTED

    def _is_full(self) -> bool:
        limit = self._session.spec.budget.max_candidates
        return limit is not None and self._proposed >= limit

    def _add(self) -> bool:
        """Bring one attempt a step further; return whether there was one."""
        has_room = len(self._queue) <= self._lanes.count
        if has_room and self._written:
            queued = self._without_build(self._written.popleft())
            self._submit(queued.attempt, queued.candidate, was_called_for=queued.was_called_for)
            return True
        may_call = self._may_call()
        if self._unwritten:
            attempt = self._unwritten[0]
            if self._write(proposal_of(attempt), attempt, may_call=may_call, has_room=has_room):
                self._unwritten.popleft()
                return True
        if self._held:
            if self._write(self._held[0], None, may_call=may_call, has_room=has_room):
                self._held.popleft()
                return True
            return False
        return self._ask_for_more(may_call=may_call, has_room=has_room)

    def _may_call(self) -> bool:
        if not self._desk.has_slot:
            return False
        why_not = self._session.why_no_call(self._desk.in_flight)
        self._refusal = self._refusal or why_not
        return why_not is None

    def _write(
        self, proposal: Proposal, attempt: Attempt | None, *, may_call: bool, has_room: bool
    ) -> bool:
        """Write a proposal or start its call; return whether that was possible now."""
        if self._desk.needs_call(proposal):
            if may_call:
                self._desk.call(proposal, attempt)
            return may_call
        if has_room:
            script = self._desk.write(proposal, attempt)
            if script is not None:
                self._submit(*script, was_called_for=False)
        return has_room

    def _ask_for_more(self, *, may_call: bool, has_room: bool) -> bool:
        if self._is_full() or len(self.parked) >= MAX_PARKED:
            return False
        limit = self._session.spec.budget.max_calls
        if limit is not None and self._desk.asked >= limit:
            self._refusal = StopReason.CALLS
            may_call = False
        # Where no model is asked, asking ahead of the queue would only propose with less learnt.
        has_model = self._desk.asked > 0
        if may_call and not self._unwritten and (has_room or has_model) and self._ask(free=False):
            return True
        may_sweep = not has_model or self._parked_sweeps < MAX_PARKED_SWEEPS
        return has_room and may_sweep and (has_model or not may_call) and self._ask(free=True)

    def _ask(self, *, free: bool) -> bool:
        proposals = self._strategy.ask(1, free=free)
        for proposal in proposals:
            self._proposed += 1
            self._held.append(proposal)
        return bool(proposals)

    def _is_readable(self, attempt: Attempt) -> bool:
        """Whether the attempt's candidate is on disk; else it is written again.

        Nobody is paid for that: what wrote it, a model's answer included, is in the journal.
        """
        assert attempt.candidate_id is not None, "it was written"
        try:
            self._session.parts.store.candidate(attempt.candidate_id)
        except BlobDamaged as exc:
            self._session.reporter.warning(f"attempt {attempt.id} is written again: {exc}")
            return False
        return True

    def _without_build(self, attempt: Attempt) -> Queued:
        """Return an attempt that an earlier session wrote, with its candidate."""
        assert attempt.candidate_id is not None, "it was written"
        return Queued(
            attempt=attempt,
            candidate=self._session.parts.store.candidate(attempt.candidate_id),
            build=None,
            was_called_for=self._desk.needs_call(proposal_of(attempt)),
        )

    def _submit(self, attempt: Attempt, candidate: Candidate, *, was_called_for: bool) -> None:
        build = None
        is_queued = any(queued.candidate.id == candidate.id for queued in self._queue)
        if not is_queued and self._outcomes.known(candidate) is None:
            self._session.reporter.tell("building", attempt=attempt)
            build = self._lanes.submit(candidate)
        place = len(self._queue)
        if was_called_for:
            place = sum(queued.was_called_for for queued in self._queue)
        self._queue.insert(
            place,
            Queued(
                attempt=attempt,
                candidate=candidate,
                build=build,
                was_called_for=was_called_for,
            ),
        )
