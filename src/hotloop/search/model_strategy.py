"""ModelStrategy: what the strategies for models share.

The starting kernel first, sweeps where only free work is asked for, and one next move at a time
otherwise. A subclass says which move; it decides from the lineage alone, so that a restored search
goes on as a live one would.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from hotloop.core.attempt import Action, Attempt, Outcome, Proposal
from hotloop.core.space import Scalar, Space
from hotloop.search.lineage import Lineage, Station
from hotloop.search.sweep import next_sweep

REPAIRS = 3
"""Repairs in a row before a design that never passed is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The call to make next."""

    action: Action
    parent: Station | None = None
    point: Mapping[str, Scalar] = field(default_factory=dict)


class ModelStrategy(ABC):
    """A strategy that spends model calls; never exhausted, the budget ends it."""

    for_models: ClassVar[bool] = True

    def __init__(
        self,
        space: Space,
        seed: int,
        *,
        width: int = 4,
        has_start: bool = False,
        has_feedback: bool = True,
    ) -> None:
        """Prepare a search.

        Args:
            space: the generator's schedules; a model has none.
            seed: of the order in which sweeps try points.
            width: calls open at a time, at most.
            has_start: whether the user's own kernel is verified before anything else.
            has_feedback: whether prompts show earlier attempts. Only `sample` cares: without, it
                does not ask for repairs of what the model cannot see.

        Raises:
            ValueError: `width` is not positive.
        """
        if width < 1:
            raise ValueError(f"expected a width from 1, got {width}")
        self._seed = seed
        self._width = width
        self._has_start = has_start
        self._has_feedback = has_feedback
        self._lineage = Lineage()

    def ask(self, n: int, *, free: bool = False) -> Sequence[Proposal]:
        """Return up to `n` proposals; with `free` sweeps and the starting kernel only."""
        proposals: list[Proposal] = []
        while len(proposals) < n:
            move = self._next_free() if free else self._next_call()
            if move is None:
                break
            proposals.append(self._lineage.propose(move.action, move.parent, move.point))
        return proposals

    def tell(self, outcome: Outcome) -> None:
        """Take in one verdict.

        Raises:
            ValueError: its id is unknown or was told before.
        """
        self._lineage.tell(outcome)

    def restore(self, attempts: Sequence[Attempt]) -> None:
        """Go on after an earlier session.

        Raises:
            ValueError: proposals were made before.
        """
        self._lineage.restore(attempts)

    @abstractmethod
    def _choose(self) -> Move | None:
        """Return the next call; None when a verdict is awaited first.

        Fewer than `width` calls are open, and the starting kernel has its verdict.
        """

    def _next_call(self) -> Move | None:
        start = self._lineage.start
        if self._has_start and start is None:
            return Move(action=Action.START)
        if start is not None and start.is_open:
            return None
        return self._choose() if self._lineage.open_calls < self._width else None

    def _next_free(self) -> Move | None:
        if self._has_start and self._lineage.start is None:
            return Move(action=Action.START)
        sweep = next_sweep(self._lineage, self._seed)
        if sweep is None:
            return None
        return Move(action=Action.SWEEP, parent=sweep.source, point=sweep.point)
