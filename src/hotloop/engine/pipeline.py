"""Pipeline: proposals on their way to the verifier, a few ahead of it.

Asks the strategy, has the candidate generated and recorded, and hands it to a build lane. First in,
first out, so a run is reproducible whichever build ends first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from hotloop.core.attempt import Attempt, Proposal
from hotloop.core.candidate import Candidate
from hotloop.core.protocols import Strategy
from hotloop.engine.lanes import Build, Lanes
from hotloop.engine.result import StopReason
from hotloop.engine.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """An attempt that awaits its verdict."""

    attempt: Attempt
    candidate: Candidate
    build: Build | None
    """None when the candidate needs no build: it was verified before, or is further ahead here."""


class Pipeline:
    """A queue that fills itself: one attempt for the verifier and one for each lane."""

    def __init__(
        self,
        session: Session,
        strategy: Strategy,
        lanes: Lanes,
        *,
        earlier: Iterable[Attempt],
        is_known: Callable[[str], bool],
    ) -> None:
        """Queue what earlier sessions left pending, before anything new.

        `is_known` says of a candidate id whether its verdict is known.
        """
        self._session = session
        self._strategy = strategy
        self._lanes = lanes
        self._is_known = is_known
        self._queue: deque[Pending] = deque()
        known = list(earlier)
        self._proposed = len(known)
        self._reopen = deque(attempt for attempt in known if attempt.verdict is None)

    def head(self) -> Pending | None:
        """Fill up and return the next attempt to verify; None when nothing more comes."""
        while len(self._queue) <= self._lanes.count and self._add():
            pass
        return self._queue[0] if self._queue else None

    def pop(self) -> None:
        """Drop the head: it has its verdict."""
        self._queue.popleft()

    def why_empty(self) -> StopReason:
        """Return why `head` has nothing more."""
        return StopReason.CANDIDATES if self._is_full() else StopReason.EXHAUSTED

    def _is_full(self) -> bool:
        limit = self._session.spec.budget.max_candidates
        return limit is not None and self._proposed >= limit

    def _add(self) -> bool:
        if self._reopen:
            self._add_again(self._reopen.popleft())
            return True
        if self._is_full():
            return False
        proposals = self._strategy.ask(1)
        for proposal in proposals:
            self._proposed += 1
            self._add_new(self._attempt(proposal), proposal)
        return bool(proposals)

    def _add_again(self, attempt: Attempt) -> None:
        if attempt.candidate_id is None:
            proposal = Proposal(
                id=attempt.id, action=attempt.action, point=attempt.point, parents=attempt.parents
            )
            self._add_new(attempt, proposal)
            return
        self._submit(attempt, self._session.parts.store.candidate(attempt.candidate_id))

    def _add_new(self, attempt: Attempt, proposal: Proposal) -> None:
        session = self._session
        candidate = session.parts.generator.generate(session.info, proposal)
        attempt = replace(attempt, candidate_id=candidate.id)
        session.reporter.started(attempt, candidate)
        self._submit(attempt, candidate)

    def _attempt(self, proposal: Proposal) -> Attempt:
        return Attempt(
            id=proposal.id,
            action=proposal.action,
            point=proposal.point,
            parents=proposal.parents,
            generator=self._session.parts.generator.name,
            candidate_id=None,
            verdict=None,
            objective=None,
            started_s=self._session.meter.spent_s(),
            finished_s=None,
        )

    def _submit(self, attempt: Attempt, candidate: Candidate) -> None:
        build = None
        queued = any(pending.candidate.id == candidate.id for pending in self._queue)
        if not queued and not self._is_known(candidate.id):
            self._session.reporter.tell("building", attempt=attempt)
            build = self._lanes.submit(candidate)
        self._queue.append(Pending(attempt=attempt, candidate=candidate, build=build))
