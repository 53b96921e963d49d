"""Whether a kernel is the one that its run began from, or what the run's generator made."""

from __future__ import annotations

from collections.abc import Sequence

from hotloop.core.attempt import Action, Attempt


def is_the_start(attempt: Attempt, attempts: Sequence[Attempt]) -> bool:
    """Return whether an attempt is its run's starting kernel.

    That kernel with other values of the tunables that it declares is still its author's.

    Args:
        attempt: one of `attempts`.
        attempts: those of the run.
    """
    by_id = {one.id: one for one in attempts}
    while attempt.action == Action.SWEEP and attempt.parents and attempt.parents[0] in by_id:
        attempt = by_id[attempt.parents[0]]
    return attempt.action == Action.START


def began_from_a_kernel(attempts: Sequence[Attempt]) -> bool:
    """Return whether a run with these attempts tried a starting kernel."""
    return any(attempt.action == Action.START for attempt in attempts)
