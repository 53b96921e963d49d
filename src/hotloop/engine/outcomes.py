"""Outcomes: what a verdict means for the run: the journal, the strategy, and the best so far."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hotloop.core import kill_points
from hotloop.core.attempt import Attempt, Outcome
from hotloop.core.protocols import Strategy
from hotloop.core.verdict import Tier, Verdict
from hotloop.engine.objective import objective_of
from hotloop.engine.session import Session


class Outcomes:
    """Concludes attempts and remembers the best."""

    def __init__(self, session: Session, strategy: Strategy, earlier: Iterable[Attempt]) -> None:
        """Take over the attempts of earlier sessions."""
        self._session = session
        self._strategy = strategy
        self._best: float | None = None
        for attempt in earlier:
            self._remember(attempt)

    def known(self, candidate_id: str) -> Verdict | None:
        """Return the verdict of a candidate that was verified before; None when it was not."""
        return self._session.parts.store.leases.verdict(candidate_id, Tier.FAST)

    def conclude(self, attempt: Attempt, verdict: Verdict) -> None:
        """Write an attempt's verdict down, then tell the strategy and whoever listens."""
        session = self._session
        objective = objective_of(verdict)
        spent_s = session.meter.spent_s()
        attempt = replace(attempt, verdict=verdict, objective=objective, finished_s=spent_s)
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

    def _remember(self, attempt: Attempt) -> bool:
        """Return whether the attempt is the best so far."""
        if attempt.objective is None:
            return False
        if self._best is not None and attempt.objective >= self._best:
            return False
        self._best = attempt.objective
        return True
