"""RandomStrategy: the starting points, then untried points drawn uniformly.

The control that every other strategy has to beat. It learns nothing from verdicts.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from hotloop.core.attempt import Attempt, Outcome, Proposal
from hotloop.core.space import Space
from hotloop.search.ledger import Ledger


class RandomStrategy:
    """Draw points without replacement until the space is exhausted."""

    def __init__(self, space: Space, seed: int) -> None:
        """Raises ValueError when a starting point is not of the space."""
        self._ledger = Ledger(space)
        self._rng = random.Random(seed)

    def ask(self, n: int, *, free: bool = False) -> Sequence[Proposal]:
        """Return up to `n` new proposals, all free; none when every point was tried."""
        proposals: list[Proposal] = []
        while len(proposals) < n:
            point = self._ledger.first_untried(self._ledger.space.starts)
            if point is None:
                point = self._ledger.draw_untried(self._rng)
            if point is None:
                break
            proposals.append(self._ledger.propose(point))
        return proposals

    def tell(self, outcome: Outcome) -> None:
        """Close a proposal.

        Raises:
            ValueError: its id is unknown or was told before.
        """
        self._ledger.settle(outcome.proposal_id)

    def restore(self, attempts: Sequence[Attempt]) -> None:
        """Go on after an earlier session: its points are not drawn again."""
        self._ledger.restore(attempts)
