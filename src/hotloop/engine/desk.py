"""Desk: has proposals written, at once or by model calls under way, and keeps their journal.

An attempt that a model is asked for is in the journal before the call, without a candidate, and
again when it is written; one that needs no call is written first and journaled once. What cannot be
written is concluded here: there is nothing to verify.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol, runtime_checkable

from hotloop.core.attempt import Attempt, Proposal, Spent, Written
from hotloop.core.candidate import Candidate
from hotloop.core.problem import ProblemInfo
from hotloop.core.verdict import Evidence, Stage, Status, Tier, Verdict
from hotloop.engine.calls import POLL_S, Call, Calls
from hotloop.engine.outage import Outage
from hotloop.engine.outcomes import Outcomes
from hotloop.engine.session import Session
from hotloop.errors import EndpointDown, NotRecorded, Pending

CALL_FAILED = "call_failed"
"""Kind of evidence where there was no answer: its time says nothing of how long answers take."""

Script = tuple[Attempt, Candidate]
"""An attempt and the candidate that was written for it."""


@runtime_checkable
class Posted(Protocol):
    """A generator whose prompts lie where somebody else finds and answers them."""

    def renew(self, info: ProblemInfo, proposal: Proposal) -> None:
        """Replace a prompt that waits in vain, as it shows what was refused; call nobody."""

    def notice(self) -> str:
        """Return a line to be told while answers are awaited; empty: none."""


class Desk:
    """Writes attempts; up to `Parts.calls` of them by calls that are under way at a time."""

    def __init__(
        self, session: Session, calls: Calls, outcomes: Outcomes, *, earlier: Iterable[Attempt]
    ) -> None:
        """Count the calls of earlier sessions."""
        self._session = session
        self._calls = calls
        self._outcomes = outcomes
        self.asked = sum(self.needs_call(proposal_of(attempt)) for attempt in earlier)
        """Attempts that a model was asked for, in all sessions."""
        self._is_over = False
        self.waiting: dict[int, tuple[str, ...]] = {}
        """Attempts whose answer is awaited from outside by nobody, with their files."""
        self.outage = Outage(session.parts.outage_s)
        self._unanswered: list[Attempt] = []

    @property
    def in_flight(self) -> int:
        """Calls that are under way."""
        return self._calls.in_flight

    @property
    def has_slot(self) -> bool:
        """Whether one more call may be under way; an awaited answer holds its slot."""
        if self._is_over or self.outage.is_on:
            return False
        return self._calls.in_flight + len(self.waiting) < self._calls.count

    def needs_call(self, proposal: Proposal) -> bool:
        """Whether a model is asked for this proposal."""
        return self._session.parts.generator.needs_call(proposal)

    def write(self, proposal: Proposal, attempt: Attempt | None = None) -> Script | None:
        """Write a proposal that needs no call; None when there is no code in it.

        `attempt` is the one that an earlier session left open.
        """
        session = self._session
        attempt = attempt or self._open(proposal)
        return self._take_in(attempt, session.parts.generator.generate(session.info, proposal))

    def call(self, proposal: Proposal, attempt: Attempt | None = None) -> None:
        """Start the call for a proposal; `attempt` is the one that an earlier session left open."""
        session = self._session
        is_new = attempt is None
        attempt = attempt or self._open(proposal)
        session.reporter.asking(attempt, is_new=is_new)
        self.asked += is_new
        deadline_s = session.call_deadline_s()
        self._calls.start(session.info, attempt, proposal, deadline_s=deadline_s)

    def collect(self) -> list[Script]:
        """Return what the calls that have ended wrote; conclude those without code.

        Raises:
            ProviderError: no call can be made at all.
        """
        self._calls.cut_slow(self._session.meter.slow_call_s())
        scripts = []
        while (call := self._calls.take()) is not None:
            script = self._settle(call)
            if script is not None:
                scripts.append(script)
        return scripts

    def take_back(self) -> list[Attempt]:
        """Return the attempts that a lasting outage left unanswered, to be asked for again."""
        unanswered, self._unanswered = self._unanswered, []
        return unanswered

    def watch(self) -> bool:
        """Give up calls that take too long; return whether a call has ended."""
        self._calls.cut_slow(self._session.meter.slow_call_s())
        generator = self._session.parts.generator
        if isinstance(generator, Posted):
            self._warn_once(generator.notice())
        return self._calls.has_ended

    def wait(self) -> None:
        """Wait for the end of a call or of an outage, while the run may go on."""
        session = self._session
        if session.parts.generator.is_outside or not self.in_flight:
            with session.meter.paused():
                self._wait()
        else:
            self._wait()

    def give_up(self) -> list[Call]:
        """Cancel the calls under way; their attempts stay open. Returns them for `charge`."""
        return self._calls.close()

    def renew(self) -> None:
        """Replace the prompts that wait in vain, also where this session asked for none of them."""
        session, generator = self._session, self._session.parts.generator
        if session.stop.draining or not isinstance(generator, Posted):
            return
        for attempt in session.parts.store.attempts():
            if attempt.verdict is None and attempt.candidate_id is None:
                try:
                    generator.renew(session.info, proposal_of(attempt))
                except EndpointDown as exc:
                    # What the session found stands; the next one says it again.
                    session.reporter.warning(str(exc))
                    return

    def charge(self, calls: Iterable[Call], *, wait_s: float) -> None:
        """Note what cancelled calls cost; those that do not end in `wait_s` may have cost money."""
        deadline_s = time.monotonic() + wait_s
        for call in calls:
            while not call.ended.wait(POLL_S) and time.monotonic() < deadline_s:
                # The first time may have come before the call was sent.
                self._session.parts.generator.cancel(call.attempt.id)
            if call.written is not None:
                self._charge(call.attempt, call.written.spent)
            elif not call.ended.is_set() and not self._session.parts.generator.is_outside:
                self._charge(call.attempt, Spent(calls=1, tokens=None, usd=None))

    def _wait(self) -> None:
        was_out = self.outage.is_on
        while not self.watch() and self._session.why_stop() is None:
            if was_out and not self.outage.is_on:
                return
            self._calls.wait(POLL_S)

    def _settle(self, call: Call) -> Script | None:
        if isinstance(call.error, Pending):
            is_told = call.error.waiting in self.waiting.values()  # drafts share one call for ideas
            self.waiting[call.attempt.id] = call.error.waiting
            self._warn_once(call.error.notice)
            if call.error.fault and not is_told:
                self._session.reporter.warning(call.error.fault)
            return None
        if isinstance(call.error, NotRecorded):
            # A recording ends here: nobody can be asked any more, and nothing is wrong.
            self._is_over = True
            return None
        if self.outage.may_pass(call.error) and not self._session.parts.generator.is_outside:
            self._wait_out(call)
            return None
        if call.error is not None:
            raise call.error
        assert call.written is not None, "a call ends with what it wrote or an error"
        written = call.written
        self._charge(call.attempt, written.spent)
        if written.no_code is None or written.no_code.kind != CALL_FAILED:
            self._session.meter.observe_call(call.seconds, written.spent)
            self.outage.answered()
        return self._take_in(call.attempt, written)

    def _warn_once(self, notice: str) -> None:
        """Warn of what is found in each session anew."""
        if not notice:
            return
        told = {note["message"] for note in self._session.parts.store.notes("warning")}
        if notice not in told:
            self._session.reporter.warning(notice)

    def _wait_out(self, call: Call) -> None:
        self._unanswered.append(call.attempt)
        wait_s = self.outage.begin()
        if wait_s is not None:
            self._session.reporter.warning(
                f"{type(call.error).__name__}: {call.error}; asked again in {wait_s:.0f} s, the "
                "clock stands while there is nothing else to do"
            )

    def _charge(self, attempt: Attempt, spent: Spent) -> None:
        for warning in self._session.meter.charge(attempt.id, spent):
            self._session.reporter.warning(warning)

    def _take_in(self, attempt: Attempt, written: Written) -> Script | None:
        candidate = written.candidate
        attempt = replace(
            attempt,
            candidate_id=None if candidate is None else candidate.id,
            declared=written.declared,
            asked=written.asked,
            notes=written.notes,
        )
        self._session.reporter.started(attempt, candidate)
        if candidate is not None:
            return attempt, candidate
        assert written.no_code is not None, "Written has a candidate or a reason"
        self._outcomes.conclude(attempt, _no_code(self._session, written.no_code))
        return None

    def _open(self, proposal: Proposal) -> Attempt:
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


def proposal_of(attempt: Attempt) -> Proposal:
    """Return the proposal that the attempt was made for."""
    return Proposal(
        id=attempt.id, action=attempt.action, point=attempt.point, parents=attempt.parents
    )


def _no_code(session: Session, why: Evidence) -> Verdict:
    policy = session.problem.policy
    return Verdict(
        status=Status.NO_CODE,
        stage=Stage.EXTRACT,
        message=why.message,
        candidate_id="",
        problem_id=session.problem.id,
        tier=Tier.FAST,
        device=session.info.device,
        evidence=why,
        precision_policy=policy.precision,
        shape_scope=policy.shape_scope,
    )
