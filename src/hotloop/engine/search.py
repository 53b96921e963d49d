"""The fast tier: propose, write, build ahead, verify one at a time, tell, until something ends it.

Model calls run beside all of it. What ends it is the budget, the strategy, the user, or that only
answers from outside are missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hotloop.core.verdict import Tier
from hotloop.engine.calls import Calls
from hotloop.engine.desk import Desk
from hotloop.engine.ending import Ending
from hotloop.engine.judging import BuildState, await_build, judge
from hotloop.engine.lanes import Lanes
from hotloop.engine.outcomes import Outcomes
from hotloop.engine.pipeline import Pipeline, Queued
from hotloop.engine.result import StopReason
from hotloop.engine.session import Session
from hotloop.errors import Pending

LAST_WORDS_S = 1.0
"""How long a cancelled call may take to say what it cost."""


@contextmanager
def fast_tier(session: Session, lanes: Lanes, calls: Calls) -> Iterator[Ending]:
    """Verify candidates at the fast tier until something ends it; yield what did.

    Calls that are still under way then are cancelled and their attempts stay open. What they cost
    is noted after the block: they end meanwhile.

    Raises:
        InfraError: the machine failed twice in a row.
        ProviderError: no model call can be made at all.
    """
    parts = session.parts
    earlier = parts.store.attempts()
    strategy = parts.strategy(parts.generator.space(session.info), session.spec.seed)
    strategy.restore(earlier)
    outcomes = Outcomes(session, strategy, earlier)
    desk = Desk(session, calls, outcomes, earlier=earlier)
    pipeline = Pipeline(session, strategy, lanes, desk=desk, outcomes=outcomes)
    pipeline.restore(earlier)
    search = _Search(session, desk, pipeline, outcomes)
    ending = search.run()
    cancelled = desk.give_up()
    yield ending
    desk.charge(cancelled, wait_s=0.0 if session.stop.now else LAST_WORDS_S)


class _Search:
    """The stations of one session, and the order in which they get their turn."""

    def __init__(
        self, session: Session, desk: Desk, pipeline: Pipeline, outcomes: Outcomes
    ) -> None:
        self._session = session
        self._desk = desk
        self._pipeline = pipeline
        self._outcomes = outcomes
        self._detail: str | None = None

    def run(self) -> Ending:
        """Go on until something ends it; return what did."""
        reason = self._loop()
        return Ending(
            reason=reason,
            detail=self._detail if reason is StopReason.WAITING else None,
            waiting=self._pipeline.waiting(),
            is_waiting=self._pipeline.is_waiting,
        )

    def _loop(self) -> StopReason:
        while (reason := self._session.why_stop()) is None:
            queued = self._pipeline.head()
            if queued is not None:
                self._verify(queued)
            elif self._desk.in_flight:
                self._desk.wait()
            else:
                return self._pipeline.why_empty()
        return reason

    def _verify(self, queued: Queued) -> None:
        """Conclude the attempt, or leave it where it is when something else comes first."""
        session = self._session
        verdict = self._outcomes.known(queued.candidate.id)
        if verdict is None:
            state = await_build(session, queued.build, until=self._desk.watch)
            if state is BuildState.UNDER_WAY or session.why_stop() is not None:
                return  # a call has ended, the wait used up the budget, or the user stopped it
            session.reporter.tell("verifying", attempt=queued.attempt)
            may_retry = state is BuildState.ENDED
            try:
                verdict = judge(session, queued.candidate, Tier.FAST, may_retry=may_retry)
            except Pending as exc:
                self._detail = str(exc)
                self._pipeline.park(queued, exc.waiting)
                return
        self._outcomes.conclude(queued.attempt, verdict)
        self._pipeline.remove(queued)
