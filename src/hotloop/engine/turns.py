"""What the loop must know of a verifier that shares its GPU with other runs.

Its calls wait for their turn first. Neither a budget nor a set-up time counts that wait: both say
what a run takes by itself. Model calls under way meanwhile go on, at no cost of wall clock.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from hotloop.core.candidate import Candidate
from hotloop.core.protocols import Verifier


@runtime_checkable
class TakesTurns(Protocol):
    """A verifier whose calls may wait for other runs; then they may raise `TurnGivenUp`."""

    waited_s: float
    """Real seconds that its calls have waited so far."""

    def pause_by(self, paused: Callable[[], AbstractContextManager[None]]) -> None:
        """Wait inside of `paused()` from now on."""

    def needs_no_turn(self, candidate: Candidate) -> None:
        """A candidate that was built is not verified: nothing waits for the GPU with it."""


def pause_by(verifier: Verifier, paused: Callable[[], AbstractContextManager[None]]) -> None:
    """Stop the clock by `paused()` while the verifier waits for its turn, if it takes turns."""
    if isinstance(verifier, TakesTurns):
        verifier.pause_by(paused)


def needs_no_turn(verifier: Verifier, candidate: Candidate) -> None:
    """Say that a candidate has its verdict without the verifier, if that takes turns."""
    if isinstance(verifier, TakesTurns):
        verifier.needs_no_turn(candidate)


def waited_s(verifier: Verifier) -> float:
    """Return the real seconds that it has waited for its turns; 0 where it takes none."""
    return verifier.waited_s if isinstance(verifier, TakesTurns) else 0.0
