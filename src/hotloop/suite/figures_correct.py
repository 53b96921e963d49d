"""Which attempts of a run brought a correct kernel, at which tier, and which was the first.

The final tier is for the best few kernels of a run, so the first kernel that passed it may come
long after the first correct one; the fast tier's first is given beside it, under its own name.
"""

from __future__ import annotations

import math

from hotloop.core.attempt import Attempt
from hotloop.suite.figures_rows import RunRow


def fast_tier_attempts(row: RunRow) -> list[Attempt]:
    """Return the attempts that passed the fast tier and did not fail the final one, by id."""
    refuted = {name for name, final in row.finals.items() if not final.passed}
    found = []
    for attempt in row.attempts:
        verdict = attempt.verdict
        if verdict is None or not verdict.passed:
            continue
        # The verdict may be another candidate's, of the same program: so is its final one.
        if not refuted & {attempt.candidate_id, verdict.candidate_id}:
            found.append(attempt)
    return found


def confirmed_attempts(row: RunRow) -> list[Attempt]:
    """Return the attempts whose candidate passed the final tier."""
    return [a for a in fast_tier_attempts(row) if (a.candidate_id or "") in row.finals]


def first_confirmed(row: RunRow) -> Attempt | None:
    """Return the attempt that first brought a kernel that passed the final tier."""
    found = confirmed_attempts(row) if row.is_solved else []
    return min(found, key=lambda a: (_finished_s(a), a.id), default=None)


def first_fast_tier(row: RunRow) -> Attempt | None:
    """Return the attempt that first passed the fast tier and was not refuted by the final one."""
    return min(fast_tier_attempts(row), key=lambda a: (_finished_s(a), a.id), default=None)


def _finished_s(attempt: Attempt) -> float:
    return math.inf if attempt.finished_s is None else attempt.finished_s
