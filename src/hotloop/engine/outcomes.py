"""Outcomes: what a verdict means for the run: the journal, the strategy, and the best so far.

A candidate that is the same program as one that passed takes that verdict over and costs no time of
a judge. The verdict goes on bearing the other's id, so that `result.ranked` can tell: what
was not judged itself is never reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from hotloop.core import kill_points
from hotloop.core.attempt import Attempt, Outcome
from hotloop.core.candidate import Candidate
from hotloop.core.normal_form import normal_form
from hotloop.core.protocols import Strategy
from hotloop.core.verdict import Tier, Verdict
from hotloop.engine.objective import objective_of
from hotloop.engine.session import Session
from hotloop.errors import StoreError


class Outcomes:
    """Concludes attempts and remembers the best."""

    def __init__(
        self,
        session: Session,
        strategy: Strategy,
        earlier: Iterable[Attempt],
        *,
        refused: Mapping[str, Verdict],
    ) -> None:
        """Take over the attempts of earlier sessions, and what the final tier refused of them."""
        self._session = session
        self._strategy = strategy
        self._refused = refused
        self._best: float | None = None
        self._forms: dict[str, str] = {}
        """Normal forms by candidate id."""
        self._judged: dict[str, Verdict] = {}
        """The first PASSED verdict of each normal form."""
        for attempt in earlier:
            self._remember(attempt)
            self._learn_again(attempt)

    def known(self, candidate: Candidate) -> Verdict | None:
        """Return the verdict of a program that was verified before; None when it was not.

        What the final tier refused is refused when it is written again.
        """
        if candidate.id in self._refused:
            return self._refused[candidate.id]
        found = self._session.parts.store.leases.verdict(candidate.id, Tier.FAST)
        return found or self._judged.get(self._form(candidate))

    def conclude(self, attempt: Attempt, verdict: Verdict) -> None:
        """Write an attempt's verdict down, then tell the strategy and whoever listens."""
        session = self._session
        objective = objective_of(verdict)
        spent_s = session.meter.spent_s()
        attempt = replace(attempt, verdict=verdict, objective=objective, finished_s=spent_s)
        if attempt.candidate_id not in (None, verdict.candidate_id):
            same = (
                f"the same program as candidate {verdict.candidate_id}: its verdict is taken over"
            )
            attempt = replace(attempt, notes=(*attempt.notes, same))
        self._learn(attempt)
        session.reporter.finished(attempt)
        self._strategy.tell(
            Outcome(
                proposal_id=attempt.id,
                verdict=verdict,
                objective=objective,
                declared=attempt.declared,
            )
        )
        kill_points.reach("after-score")
        if self._remember(attempt):
            session.reporter.tell("best", attempt=attempt)
        session.reporter.tell(
            "budget",
            spent_s=spent_s,
            limit_s=session.spec.budget.wall_s,
            spent_tokens=session.meter.spent_tokens(),
            spent_usd=session.meter.spent_usd(),
        )

    def _form(self, candidate: Candidate) -> str:
        form = self._forms.get(candidate.id)
        if form is None:
            form = self._forms[candidate.id] = normal_form(candidate)
        return form

    def _learn(self, attempt: Attempt) -> None:
        verdict, form = attempt.verdict, self._forms.get(attempt.candidate_id or "")
        if verdict is None or form is None or verdict.candidate_id != attempt.candidate_id:
            return
        # A failure is judged again: compilers read more of the text than a normal form keeps.
        if verdict.passed:
            self._judged.setdefault(form, verdict)

    def _learn_again(self, attempt: Attempt) -> None:
        """Learn the verdict of an earlier session, unless its candidate is gone from the disk."""
        if attempt.verdict is None or attempt.candidate_id is None:
            return
        try:
            self._form(self._session.parts.store.candidate(attempt.candidate_id))
        except StoreError:
            return
        self._learn(attempt)

    def _remember(self, attempt: Attempt) -> bool:
        """Return whether the attempt is the best so far."""
        if attempt.objective is None:
            return False
        if self._best is not None and attempt.objective >= self._best:
            return False
        self._best = attempt.objective
        return True
