"""Ending: why a session ended, and what it leaves to others."""

from __future__ import annotations

from dataclasses import dataclass

from hotloop.engine.result import StopReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a session ended."""

    reason: StopReason
    detail: str | None = None
    """What the reason alone does not say."""
    waiting: tuple[str, ...] = ()
    """The files to be answered from outside."""
    is_waiting: bool = False
    """Whether an answer from outside is missing; it need not come in a file."""
