"""What an attempt without a verdict is: one that waits for it, or one that never gets it."""

from __future__ import annotations

NO_VERDICT = "no verdict yet"
NEVER_JUDGED = "never judged"
GOES_ON = frozenset({"waiting", "interrupted", "failed"})
"""Reasons of an end after which the same command goes on with what is open."""


def is_ended(reason: str | None) -> bool:
    """Whether a search that stopped for this reason leaves what is open for good; None: it runs."""
    return reason is not None and reason not in GOES_ON


def open_status(*, ended: bool) -> str:
    """Return what stands in the place of a status."""
    return NEVER_JUDGED if ended else NO_VERDICT
