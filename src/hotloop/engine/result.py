"""RunResult: what a search came to, from the journal alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hotloop.core.attempt import Attempt, Budget, RunSpec
from hotloop.core.finals import FINAL_NOTE, is_enough
from hotloop.core.protocols import Store
from hotloop.core.record import from_json
from hotloop.core.verdict import Verdict
from hotloop.engine.costs import CallCosts


class StopReason(StrEnum):
    """Why a run ended."""

    WALL = "wall"
    """The wall-clock budget is spent."""
    CANDIDATES = "candidates"
    """As many candidates as the budget allows were verified."""
    CALLS = "calls"
    """The model was called for as many candidates as the budget allows."""
    TOKENS = "tokens"
    """No further model call fits the tokens of the budget."""
    USD = "usd"
    """No further model call fits the dollars of the budget."""
    EXHAUSTED = "exhausted"
    """The strategy has nothing left to try."""
    CLOSED = "closed"
    """The user closed the search: its best kernel is what was known then. Without closing it, the
    same command goes on."""
    WAITING = "waiting"
    """Only answers from outside are missing; the same command goes on."""
    INTERRUPTED = "interrupted"
    """The user asked it to stop; the same command goes on."""
    FAILED = "failed"
    """An error ended it (journal only: the error is raised); the same command goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The best verified candidate of a run and how it was found."""

    best_attempt_id: int | None
    """The best at the final tier; before that, or if all failed there, at the fast tier."""
    fast: Verdict | None
    """The fast verdict of that attempt; None when none passed."""
    final: Verdict | None
    """Its final verdict, PASSED or not; None on `cpu`, and when the final tier did not run."""
    attempts: tuple[Attempt, ...]
    """All attempts, also the pending ones, in order of id."""
    spent_s: float
    """Wall seconds of all sessions, without set-up."""
    setup_s: float
    """Wall seconds that all sessions took to load the problem."""
    reason: StopReason
    detail: str | None = None
    """What the reason alone does not say."""
    waiting: tuple[str, ...] = ()
    """The files to be answered, where the reason is `waiting`."""
    calls: int = 0
    """Model calls of all sessions."""
    tokens: int | None = 0
    """Tokens of all calls; None when one of them did not say."""
    usd: float | None = 0.0
    """Dollars of all calls; None when the price of one is unknown."""

    @property
    def passed(self) -> bool:
        """Whether there is a kernel to report: PASSED at the highest tier of its device."""
        verdict = self.fast if self.fast is not None and self.fast.device == "cpu" else self.final
        return verdict is not None and verdict.passed


def ranked(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Return the attempts that can be ranked, best first, one for each candidate.

    One that took another candidate's verdict over is not ranked beside it.
    """
    passed = [a for a in attempts if a.objective is not None and a.candidate_id is not None]
    passed = [a for a in passed if a.verdict is None or a.verdict.candidate_id == a.candidate_id]
    passed.sort(key=lambda a: (a.objective, a.id))
    first: dict[str | None, Attempt] = {}
    for attempt in passed:
        first.setdefault(attempt.candidate_id, attempt)
    return list(first.values())


def stored_finals(store: Store) -> dict[str, Verdict]:
    """Return the final verdicts in the journal by candidate id."""
    return {
        str(note["candidate_id"]): from_json(Verdict, note["verdict"])
        for note in store.notes(FINAL_NOTE)
    }


def collect(
    store: Store,
    reason: StopReason,
    detail: str | None = None,
    *,
    waiting: tuple[str, ...] = (),
) -> RunResult:
    """Return the result that the journal amounts to."""
    attempts = tuple(store.attempts())
    finals = stored_finals(store)
    best = best_attempt(attempts, finals)
    costs = CallCosts(store)
    tokens = costs.tokens().exact
    return RunResult(
        best_attempt_id=None if best is None else best.id,
        fast=None if best is None else best.verdict,
        final=None if best is None else finals.get(best.candidate_id or ""),
        attempts=attempts,
        spent_s=store.spent_s(),
        setup_s=sum(float(note["setup_s"]) for note in store.notes("setup")),
        reason=reason,
        detail=detail,
        waiting=waiting,
        calls=costs.calls,
        tokens=None if tokens is None else int(tokens),
        usd=costs.usd().exact,
    )


def best_attempt(attempts: Sequence[Attempt], finals: Mapping[str, Verdict]) -> Attempt | None:
    """Return the attempt to report; None when none passed.

    Final latency decides among those that passed the final tier; a candidate that was not tried
    there does not outrank them.
    """
    order = ranked(attempts)
    confirmed = []
    for attempt in order:
        final = finals.get(attempt.candidate_id or "")
        if final is not None and final.passed and final.performance is not None:
            confirmed.append((final.performance.latency_ms, attempt.id, attempt))
    if confirmed:
        return min(confirmed)[2]
    return order[0] if order else None


def stored_result(store: Store, spec: RunSpec, *, closes: bool = False) -> RunResult | None:
    """Return the result of a run that has nothing left to do; None when it can go on.

    That is so when its last session ended because the strategy was exhausted or because a limit
    was reached that the budget asked for now does not raise; and when it was closed, as long as
    closing it is asked for (`closes`). A short final verdict is none where the full one is asked
    for now.
    """
    stops = store.notes("stopped")
    if not stops:
        return None
    reason = StopReason(stops[-1]["reason"])
    former = from_json(Budget, stops[-1]["budget"])
    over = {
        StopReason.EXHAUSTED: True,
        StopReason.CLOSED: closes,
        StopReason.WALL: _within(spec.budget.wall_s, former.wall_s),
        StopReason.CANDIDATES: _within(spec.budget.max_candidates, former.max_candidates),
        StopReason.CALLS: _within(spec.budget.max_calls, former.max_calls),
        StopReason.TOKENS: _within(spec.budget.max_tokens, former.max_tokens),
        StopReason.USD: _within(spec.budget.max_usd, former.max_usd),
    }
    if not over.get(reason, False):
        return None
    result = collect(store, reason, stops[-1]["message"])
    is_settled = result.final is None or is_enough(
        result.final, wants_full=not spec.has_short_final
    )
    return result if is_settled else None


def _within(asked: float | None, former: float | None) -> bool:
    return asked is not None and former is not None and asked <= former
