"""What a journal notes of a judge elsewhere: what is wanted of it, and what it answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from hotloop.core.audit import Audit
from hotloop.core.finals import is_enough
from hotloop.core.record import from_json
from hotloop.core.verdict import Tier, Verdict

WANTED = "outside_wanted"
"""Fields: `problem_id`, `candidate_id`, `tier`; `full` where a short final verdict is there and is
not enough."""
INFO = "outside_info"
AUDIT = "outside_audit"
VERDICT = "outside_verdict"
ERROR = "outside_error"
CLOSING = "closing"
"""Noted by the engine: whether the search was closed."""

Wish = tuple[str | None, str | None]
"""Candidate id and tier; both None for the problem itself."""


class Notes(Protocol):
    """What `last_audit` reads: a store, or a run that is only read."""

    def notes(self, kind: str) -> Sequence[Mapping[str, Any]]: ...  # noqa: D102


def last_audit(run: Notes) -> Audit | None:
    """Return the audit of the last load elsewhere; None where there is none yet."""
    found = [note["audit"] for note in run.notes(AUDIT)]
    found = found or [note["info"].get("audit") for note in run.notes(INFO)]
    return from_json(Audit, found[-1]) if found and found[-1] else None


def refusals_by_wish(notes: Sequence[Mapping[str, Any]]) -> Counter[Wish]:
    """Count how often each candidate could not be judged, by the tier asked for.

    Notes of older versions name no tier and count for each.
    """
    return Counter(
        (note["candidate_id"], tier)
        for note in notes
        for tier in ([note["tier"]] if note.get("tier") else [t.value for t in Tier])
    )


def load_errors(notes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return those of the problem itself; a candidate's own stay pending."""
    return [note for note in notes if note["candidate_id"] is None]


def unanswered_in_full(
    wanted: Sequence[Mapping[str, Any]], answers: Sequence[Mapping[str, Any]]
) -> set[Wish]:
    """Return what the full final tier was asked for after a short verdict, and has not answered.

    Args:
        wanted: notes of the kind `WANTED`.
        answers: notes of the kind `VERDICT`.
    """
    asked = {(note["candidate_id"], note["tier"]) for note in wanted if note.get("full")}
    return asked - {
        (note["candidate_id"], note["tier"])
        for note in answers
        if (note["candidate_id"], note["tier"]) in asked
        and is_enough(from_json(Verdict, note["verdict"]), wants_full=True)
    }


def wishes(notes: Iterable[Mapping[str, Any]]) -> set[Wish]:
    """Return what notes ask for, or answer."""
    return {(note["candidate_id"], note["tier"]) for note in notes}
