"""The fast tier: propose, write, build ahead, verify one at a time, tell, until something ends it.

Model calls run beside all of it. What ends it is the budget, the strategy, the user, or that only
answers from outside are missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hotloop.core.finals import FINAL_NOTE, refusals, with_refusals
from hotloop.core.verdict import Tier, Verdict
from hotloop.engine.calls import Call, Calls
from hotloop.engine.desk import Desk
from hotloop.engine.elsewhere import given_up, is_judged_elsewhere, is_refused, is_wanted
from hotloop.engine.ending import Ending
from hotloop.engine.final import note_answered
from hotloop.engine.judging import BuildState, await_build, judge
from hotloop.engine.lanes import Lanes
from hotloop.engine.outcomes import Outcomes
from hotloop.engine.pipeline import Pipeline, Queued
from hotloop.engine.result import StopReason
from hotloop.engine.session import Session
from hotloop.engine.turns import needs_no_turn
from hotloop.errors import Pending, TurnGivenUp

LAST_WORDS_S = 1.0
"""How long a cancelled call may take to say what it cost."""

FREE_S = 1.0
"""A judge elsewhere answers from the journal in less. A run that is gone on with by a judge of this
machine takes longer, and must not verify what its budget has no time for."""


@contextmanager
def fast_tier(session: Session, lanes: Lanes, calls: Calls) -> Iterator[Ending]:
    """Verify candidates at the fast tier until something ends it; yield what did.

    Calls that are still under way then are cancelled and their attempts stay open. What they cost
    is noted after the block, also when an error ends it: they end meanwhile.

    Raises:
        InfraError: the machine failed twice in a row.
        ProviderError: no model call can be made at all.
    """
    parts = session.parts
    note_answered(session)
    # What the final tier has refused by now has failed for all that comes.
    refused = refusals(parts.store.notes(FINAL_NOTE))
    earlier = with_refusals(parts.store.attempts(), refused)
    strategy = parts.strategy(parts.generator.space(session.info), session.spec.seed)
    strategy.restore(earlier)
    outcomes = Outcomes(session, strategy, earlier, refused=refused)
    desk = Desk(session, calls, outcomes, earlier=earlier)
    pipeline = Pipeline(session, strategy, lanes, desk=desk, outcomes=outcomes)
    pipeline.restore(earlier)
    search = _Search(session, desk, pipeline, outcomes)
    cancelled: list[Call] = []
    try:
        try:
            ending = search.run()
        finally:
            cancelled = desk.give_up()
        yield ending
    finally:
        desk.charge(cancelled, wait_s=0.0 if session.stop.now else LAST_WORDS_S)
    # The final tier may have refused what prompts that still wait show as correct.
    desk.renew()


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
        if reason is StopReason.CLOSED:
            self._take_known()
        if reason is StopReason.WALL:
            if is_judged_elsewhere(self._session.parts.store):
                self._ask_elsewhere()
            if self._awaits_verdicts():
                reason = StopReason.WAITING
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
            elif self._desk.in_flight or self._desk.outage.is_on:
                self._desk.wait()
            else:
                return self._pipeline.why_empty()
        return reason

    def _verify(self, queued: Queued) -> None:
        """Conclude the attempt, or leave it where it is when something else comes first."""
        session = self._session
        verdict = self._outcomes.known(queued.candidate)
        if verdict is None:
            state = await_build(session, queued.build, until=self._desk.watch)
            if state is BuildState.UNDER_WAY or session.why_stop() is not None:
                return  # a call has ended, the wait used up the budget, or the user stopped it
            self._judge(queued)
            return
        needs_no_turn(session.parts.verifier, queued.candidate)
        self._conclude(queued, verdict)

    def _take_known(self) -> None:
        """Conclude what a judge elsewhere has answered; the rest stays open, asked for or not."""
        if not is_judged_elsewhere(self._session.parts.store):
            return
        for queued in self._pipeline.drain():
            verdict = self._outcomes.known(queued.candidate)
            if verdict is not None:
                self._conclude(queued, verdict)
            elif is_wanted(self._session.parts.store, queued.candidate.id, Tier.FAST):
                self._judge(queued, may_retry=False)

    def _ask_elsewhere(self) -> None:
        """Ask for the verdicts of all that is written: that takes no time of this machine."""
        clock = self._session.clock
        for queued in self._pipeline.drain():
            if self._session.stop.draining:
                return
            verdict = self._outcomes.known(queued.candidate)
            if verdict is not None:
                self._conclude(queued, verdict)
                continue
            began_s = clock()
            self._judge(queued, may_retry=False)
            if clock() - began_s > FREE_S:
                return

    def _judge(self, queued: Queued, *, may_retry: bool = True) -> None:
        """Verify and conclude, or set it aside when it is judged elsewhere.

        What no machine there could judge is concluded as well, so that the search goes on.
        """
        self._session.reporter.tell("verifying", attempt=queued.attempt)
        try:
            verdict = judge(self._session, queued.candidate, Tier.FAST, may_retry=may_retry)
        except Pending as exc:
            unjudged = given_up(self._session, queued.candidate.id)
            if unjudged is not None:
                self._conclude(queued, unjudged)
                return
            self._detail = str(exc)
            self._pipeline.park(queued, exc.waiting)
        except TurnGivenUp:
            return  # the user stopped the run: the attempt stays open
        else:
            self._conclude(queued, verdict)

    def _conclude(self, queued: Queued, verdict: Verdict) -> None:
        self._outcomes.conclude(queued.attempt, verdict)
        self._pipeline.remove(queued)

    def _awaits_verdicts(self) -> bool:
        """Whether a verdict can still come back; one that the other machine refused cannot."""
        store = self._session.parts.store
        candidate = {attempt.id: attempt.candidate_id for attempt in store.attempts()}
        return any(
            not is_refused(store, candidate[attempt_id] or "", Tier.FAST)
            for attempt_id in self._pipeline.parked
        )
