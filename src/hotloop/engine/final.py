"""The final tier: the best candidates of the loop, verified again from scratch.

Only final numbers are results. The best one always gets its final verification, even where the
reserve for it proved too small: a run that ends without one has found nothing. Others follow while
the budget allows: the next best when the best failed, and those so close behind that the loop's
short timing cannot tell them apart; these are left out where the search is closed. What is reported
has the full final tier where the run asks for it: a short verdict of an earlier session is not
enough then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hotloop.core.attempt import Attempt
from hotloop.core.finals import FINAL_NOTE, is_enough, refusals, was_judged
from hotloop.core.verdict import Tier, Verdict
from hotloop.engine.elsewhere import (
    MAX_REFUSALS,
    answered_finals,
    is_judged_elsewhere,
    is_refused,
)
from hotloop.engine.judging import judge
from hotloop.engine.result import best_attempt, ranked, stored_finals
from hotloop.engine.session import Session
from hotloop.errors import Pending, TurnGivenUp

MAX_FINALS = 3
"""Candidates of one ranking that may reach the final tier."""

CLOSE_FRAC = 0.05
"""A candidate this close behind the best may turn out faster: short timings on a GPU whose clock
is not locked differ by a few per cent from one process to the next."""


def run_final_tier(session: Session) -> Pending | None:
    """Verify the best one to three; their verdicts go to the journal.

    Returns what is judged elsewhere and has not come back yet; None when nothing is missing. What
    the other machine could not judge is not missing once another candidate has passed, or once it
    failed there `MAX_REFUSALS` times.

    Raises:
        InfraError: the machine failed twice.
    """
    finals, awaited = _enough(session), dict[str, Pending]()
    contenders = _contenders(session)
    for place, attempt in enumerate(contenders):
        if attempt.candidate_id in finals:
            continue
        if not _is_worth(session, attempt, contenders[:place], finals):
            break
        if not _verify(session, attempt, finals, awaited):
            break
    _confirm(session, finals, awaited)
    tries = 1 if any(verdict.passed for verdict in finals.values()) else MAX_REFUSALS
    return _together(list(_without_refused(session, awaited, tries).values()))


def note_answered(session: Session) -> None:
    """Note the final verdicts that a judge elsewhere has given since they were asked for.

    A search that still waits for answers does not come to its final tier, and nobody is to build
    meanwhile on a kernel that was refused.
    """
    store = session.parts.store
    answered = answered_finals(store, wants_full=not session.spec.has_short_final)
    known = _enough(session)
    for attempt in ranked(store.attempts()) if answered else ():
        candidate_id = attempt.candidate_id or ""
        if candidate_id in answered and candidate_id not in known:
            session.reporter.final(attempt, answered[candidate_id])


def _enough(session: Session) -> dict[str, Verdict]:
    """Return the final verdicts in the journal that this run need not ask for again."""
    wants_full = not session.spec.has_short_final
    finals = stored_finals(session.parts.store)
    return {i: v for i, v in finals.items() if is_enough(v, wants_full=wants_full)}


def _contenders(session: Session) -> list[Attempt]:
    """Return the best of what is not settled.

    What was refused before the last attempt had its fast verdict is: the search has gone on from
    others, and the ranking is theirs.
    """
    store = session.parts.store
    attempts, notes = store.attempts(), store.notes(FINAL_NOTE)
    concluded = sum(attempt.verdict is not None for attempt in attempts)
    settled = refusals(n for n in notes if n.get("concluded", concluded) < concluded)
    return [a for a in ranked(attempts) if a.candidate_id not in settled][:MAX_FINALS]


def _verify(
    session: Session, attempt: Attempt, finals: dict[str, Verdict], awaited: dict[str, Pending]
) -> bool:
    """Verify one at the final tier and keep what came of it; False: the user stopped the run."""
    assert attempt.candidate_id is not None, "ranked() leaves out attempts without code"
    session.reporter.tell("verifying", attempt=attempt)
    try:
        candidate = session.parts.store.candidate(attempt.candidate_id)
        verdict = judge(session, candidate, Tier.FINAL)
    except Pending as exc:
        awaited[attempt.candidate_id] = exc
    except TurnGivenUp:
        return False
    else:
        _note(session, attempt, verdict)
        finals[attempt.candidate_id] = verdict
    return True


def _note(session: Session, attempt: Attempt, verdict: Verdict) -> None:
    """Note a final verdict; a machine's fault takes nobody's earlier one away."""
    earlier = stored_finals(session.parts.store).get(attempt.candidate_id or "")
    if earlier is None or not earlier.passed or was_judged(verdict):
        session.reporter.final(attempt, verdict)
        return
    which = "short final verdict" if earlier.short else "final verdict"
    session.reporter.warning(
        f"candidate {attempt.candidate_id} keeps the {which} that it passed with; the next session "
        "has it judged again"
    )


def _confirm(session: Session, finals: dict[str, Verdict], awaited: dict[str, Pending]) -> None:
    """Have no short verdict reported where the full final tier is asked for.

    A kernel with a short verdict from before may be the best still, though it is not among the
    contenders, or was not worth it as one.
    """
    store = session.parts.store
    while not session.stop.draining:
        known = stored_finals(store)
        best = best_attempt(store.attempts(), known)
        if best is None or best.candidate_id not in known:
            return
        if best.candidate_id in finals or best.candidate_id in awaited:
            return
        if not _verify(session, best, finals, awaited):
            return


def _without_refused(
    session: Session, awaited: Mapping[str, Pending], tries: int
) -> dict[str, Pending]:
    """Return what may still come back; warn of the rest."""
    kept = dict(awaited)
    for candidate_id in awaited:
        if is_refused(session.parts.store, candidate_id, Tier.FINAL, times=tries):
            del kept[candidate_id]
            session.reporter.warning(
                f"candidate {candidate_id} could not be judged elsewhere (final): the run ends "
                "without its final verdict"
            )
    return kept


def _together(awaited: Sequence[Pending]) -> Pending | None:
    if not awaited:
        return None
    files = dict.fromkeys(file for exc in awaited for file in exc.waiting)
    return Pending(str(awaited[0]), waiting=tuple(files))


def _is_worth(
    session: Session, attempt: Attempt, earlier: Sequence[Attempt], finals: Mapping[str, Verdict]
) -> bool:
    meter, stop = session.meter, session.stop
    if stop.now:
        return False
    if stop.draining:
        return not earlier and meter.allows_final()
    if not earlier:
        return True
    # A judge elsewhere takes no time of this machine.
    is_free = is_judged_elsewhere(session.parts.store)
    passed = [a for a in earlier if _may_pass(session, a, finals)]
    if not passed:
        return is_free or meter.remaining_s() > 0
    if session.parts.closes:
        return False  # it is to end: one that passes is enough
    limit = (1.0 + CLOSE_FRAC) * (passed[0].objective or 0.0)
    return (attempt.objective or 0.0) <= limit and (is_free or meter.allows_final())


def _may_pass(session: Session, attempt: Attempt, finals: Mapping[str, Verdict]) -> bool:
    # What is judged elsewhere is taken to pass until the answer says otherwise.
    candidate_id = attempt.candidate_id or ""
    if candidate_id in finals:
        return finals[candidate_id].passed
    return not is_refused(session.parts.store, candidate_id, Tier.FINAL)
