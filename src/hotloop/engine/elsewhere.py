"""What the journal says of a judge elsewhere, whose verdicts are carried here by hand.

Asking such a judge takes no time of this machine. Its verifier notes what it was asked for
(`outside_wanted`), and what the other machine answered (`outside_verdict`) or could not judge
(`outside_error`); read here only.

A machine that fails is no fault of the candidate, and may be another one next time: it is asked
for again. What fails again is gone on without, or one candidate would hold up the whole search.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hotloop.core.finals import NOT_JUDGED, is_enough
from hotloop.core.protocols import Store
from hotloop.core.record import from_json
from hotloop.core.verdict import Evidence, Stage, Status, Tier, Verdict
from hotloop.engine.session import Session

WANTED = "outside_wanted"
CLOSING = "closing"
ERROR = "outside_error"
"""Fields: `candidate_id`, and `tier` where it is known."""

VERDICT = "outside_verdict"
"""Fields: `candidate_id`, `tier`, `verdict`."""

MAX_REFUSALS = 2
"""How often a candidate may come back from a tier without a verdict."""


def is_judged_elsewhere(store: Store) -> bool:
    """Whether this run has asked a judge elsewhere."""
    return bool(store.notes(WANTED))


def is_wanted(store: Store, candidate_id: str, tier: Tier) -> bool:
    """Whether a judge elsewhere was asked for this verdict."""
    return any(
        note.get("candidate_id") == candidate_id and note.get("tier") == tier.value
        for note in store.notes(WANTED)
    )


def answered_finals(store: Store, *, wants_full: bool) -> dict[str, Verdict]:
    """Return the final verdicts that a judge elsewhere has given, by candidate id.

    The first one that is enough counts, as for the verifier.
    """
    found: dict[str, Verdict] = {}
    for note in store.notes(VERDICT):
        if note["tier"] != Tier.FINAL.value:
            continue
        verdict = from_json(Verdict, note["verdict"])
        if is_enough(verdict, wants_full=wants_full):
            found.setdefault(str(note["candidate_id"]), verdict)
    return found


def note_closing(store: Store, closes: bool) -> None:
    """Write down that the search is closed, or open again: what it wanted is wanted or not."""
    notes = store.notes(CLOSING)
    if closes != bool(notes and notes[-1]["closes"]):
        store.note(CLOSING, {"closes": closes})


def is_refused(store: Store, candidate_id: str, tier: Tier, *, times: int = 1) -> bool:
    """Whether the other machine could not judge a candidate, so often: its verdict may not come."""
    return len(_refusals(store, candidate_id, tier)) >= times


def given_up(session: Session, candidate_id: str) -> Verdict | None:
    """Return how an attempt ends whose candidate no machine could judge at the fast tier.

    None while it may still be judged.
    """
    refusals = _refusals(session.parts.store, candidate_id, Tier.FAST)
    if len(refusals) < MAX_REFUSALS:
        return None
    last = refusals[-1]
    why = f"tried {len(refusals)} times: {last['error']}: {last['message']}"
    return not_judged(session, candidate_id, Tier.FAST, why)


def not_judged(session: Session, candidate_id: str, tier: Tier, why: str) -> Verdict:
    """Return the verdict on a candidate that no machine could judge."""
    policy = session.problem.policy
    message = f"not judged: {why}"
    return Verdict(
        status=Status.INCONCLUSIVE,
        stage=Stage.STATIC,
        message=message,
        candidate_id=candidate_id,
        problem_id=session.problem.id,
        tier=tier,
        device=session.info.device,
        evidence=Evidence(kind=NOT_JUDGED, message=message),
        precision_policy=policy.precision,
        shape_scope=policy.shape_scope,
    )


def _refusals(store: Store, candidate_id: str, tier: Tier) -> list[Mapping[str, Any]]:
    return [
        note
        for note in store.notes(ERROR)
        if note.get("candidate_id") == candidate_id and note.get("tier") in (None, tier.value)
    ]
