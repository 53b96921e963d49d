"""What final verdicts say: which kernels they refuse, and which questions they answer.

The final tier draws new inputs and checks more than the loop, so its word counts: nobody is to
build on a kernel that it refused, to be measured by its time, or to have it shown as the best one.
Attempts keep the fast verdict that they were concluded with; here they are seen with the final one
in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hotloop.core.attempt import Attempt
from hotloop.core.record import from_json
from hotloop.core.verdict import Status, Verdict

FINAL_NOTE = "final"
"""Kind of the note on a final verdict.

Fields: `attempt_id`, `candidate_id`, `verdict`, and `concluded`: how many attempts had their fast
verdict by then.
"""

NOT_JUDGED = "not_judged"
"""Kind of evidence of what no machine could judge. It says nothing of the kernel."""

UNDECIDED = frozenset({Status.INCONCLUSIVE, Status.COMPILED_ONLY})
"""Neither passed nor the kernel's fault: what the loop found out stands."""


def was_judged(verdict: Verdict) -> bool:
    """Whether a machine came to the verdict; else the machine was at fault."""
    return verdict.evidence is None or verdict.evidence.kind != NOT_JUDGED


def is_enough(verdict: Verdict, *, wants_full: bool) -> bool:
    """Whether a verdict answers a run that asks for the full final tier, or is content with less.

    A short one that refuses a kernel is enough for both: the full tier checks the same and more.
    That a machine could not judge is no answer: the next session asks again.
    """
    if not was_judged(verdict):
        return False
    return not wants_full or not verdict.short or not verdict.passed


def refusals(notes: Iterable[Mapping[str, Any]]) -> dict[str, Verdict]:
    """Return the final verdicts that refuse a kernel, by candidate id.

    Args:
        notes: those of the kind `FINAL_NOTE`, oldest first; the last one on a candidate counts.
    """
    last = {str(note["candidate_id"]): note["verdict"] for note in notes}
    found = {candidate_id: from_json(Verdict, record) for candidate_id, record in last.items()}
    return {i: v for i, v in found.items() if not v.passed and v.status not in UNDECIDED}


def with_refusals(
    attempts: Sequence[Attempt], refused: Mapping[str, Verdict]
) -> tuple[Attempt, ...]:
    """Return attempts as they stand after the final tier: refused ones failed.

    One that took a refused kernel's verdict over, as the same program, is refused with it.
    """
    return tuple(_seen(attempt, refused) for attempt in attempts)


def _seen(attempt: Attempt, refused: Mapping[str, Verdict]) -> Attempt:
    verdict = attempt.verdict
    if verdict is None or not verdict.passed or verdict.candidate_id not in refused:
        return attempt
    return replace(attempt, verdict=refused[verdict.candidate_id], objective=None)
