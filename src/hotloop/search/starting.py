"""WithStart: a strategy over schedules that begins with the user's own kernel.

The kernel is verified first. When it passed, sweeps of the tunables that it declares alternate with
the wrapped strategy's points, which do not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

from hotloop.core.attempt import Action, Attempt, Outcome, Proposal
from hotloop.core.protocols import Strategy
from hotloop.core.space import Space
from hotloop.search.lineage import Lineage
from hotloop.search.sweep import next_sweep


class WithStart:
    """Propose the starting kernel as 1, then its sweeps and another strategy's points in turn."""

    for_models: ClassVar[bool] = False

    def __init__(self, make: Callable[[Space, int], Strategy], space: Space, seed: int) -> None:
        """Wrap what `make` returns for the space and the seed."""
        self._inner = make(space, seed)
        self._seed = seed
        self._lineage = Lineage()
        self._inner_ids: dict[int, int] = {}
        self._inner_count = 0

    def ask(self, n: int, *, free: bool = False) -> Sequence[Proposal]:
        """Return up to `n` new proposals; none when both sides have nothing left."""
        proposals: list[Proposal] = []
        while len(proposals) < n:
            proposal = self._propose(free)
            if proposal is None:
                break
            proposals.append(proposal)
        return proposals

    def tell(self, outcome: Outcome) -> None:
        """Pass a verdict on to whom it belongs.

        Raises:
            ValueError: its id is unknown or was told before.
        """
        self._lineage.tell(outcome)
        inner_id = self._inner_ids.pop(outcome.proposal_id, None)
        if inner_id is not None:
            self._inner.tell(replace(outcome, proposal_id=inner_id))

    def restore(self, attempts: Sequence[Attempt]) -> None:
        """Go on after an earlier session.

        Raises:
            ValueError: proposals were made before.
        """
        self._lineage.restore(attempts)
        own = (Action.START, Action.SWEEP)
        theirs = [attempt for attempt in attempts if attempt.action not in own]
        self._inner.restore(theirs)
        self._inner_ids = {a.id: a.id for a in theirs if a.verdict is None}
        self._inner_count = len(theirs)

    def _propose(self, free: bool) -> Proposal | None:
        if self._lineage.start is None:
            return self._lineage.propose(Action.START)
        swept = sum(s.action is Action.SWEEP for s in self._lineage.stations)
        if swept <= self._inner_count:
            return self._sweep() or self._point(free)
        return self._point(free) or self._sweep()

    def _sweep(self) -> Proposal | None:
        sweep = next_sweep(self._lineage, self._seed)
        if sweep is None:
            return None
        return self._lineage.propose(Action.SWEEP, sweep.source, sweep.point)

    def _point(self, free: bool) -> Proposal | None:
        """Return the wrapped strategy's next proposal under an id of this run."""
        found = self._inner.ask(1, free=free)
        if not found:
            return None
        number = self._lineage.reserve()
        self._inner_ids[number] = found[0].id
        self._inner_count += 1
        return replace(found[0], id=number)
