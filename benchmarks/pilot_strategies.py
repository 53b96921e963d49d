"""`refine` and `sample` without sweeps: every attempt of the pilot is a model call.

Arms are compared at the same number of calls, and what a call brings is asked, not what a sweep
of its tunables adds. A kernel that a user brings would still come first.
"""

from __future__ import annotations

from hotloop.core.attempt import Action
from hotloop.search.model_strategy import Move
from hotloop.search.refine import RefineStrategy
from hotloop.search.sample import SampleStrategy


def _start_only(move: Move | None) -> Move | None:
    return move if move is not None and move.action is Action.START else None


class RefineCalls(RefineStrategy):
    """One kernel, made better call by call."""

    def _next_free(self) -> Move | None:
        return _start_only(super()._next_free())


class SampleCalls(SampleStrategy):
    """Independent drafts."""

    def _next_free(self) -> Move | None:
        return _start_only(super()._next_free())
