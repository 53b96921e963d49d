"""Which points were tried, and which proposal is which: the bookkeeping of a strategy.

Hands out proposal ids, refuses ids that it never gave out, and knows what is left of a space. It
decides nothing: that is the strategy's part.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence

from hotloop.core.attempt import Attempt, Proposal
from hotloop.core.space import Point, Scalar, Space
from hotloop.search.points import contains, draw_point, enumerate_points, point_key

ACTION = "schedule"
"""The action of every proposal that is a point of a generator's space."""

ENUMERATED_POINTS = 20_000
"""Spaces up to this size are listed, so that they can be exhausted exactly (some 20 MB)."""

REJECTIONS = 2_000
"""Draws in a row that hit tried points before a larger space counts as exhausted."""


class Ledger:
    """The tried points of one space and the open proposals."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self._tried: set[str] = set()
        self._open: dict[int, dict[str, Scalar] | None] = {}
        self._next_id = 1
        listed = list(itertools.islice(enumerate_points(space), ENUMERATED_POINTS + 1))
        self._untried = (
            {point_key(p): p for p in listed} if len(listed) <= ENUMERATED_POINTS else None
        )

    def is_tried(self, point: Point) -> bool:
        """Whether the point was proposed before."""
        return point_key(point) in self._tried

    def propose(self, point: dict[str, Scalar]) -> Proposal:
        """Open a proposal for a point."""
        proposal = Proposal(id=self._next_id, action=ACTION, point=point)
        self._next_id += 1
        self._open[proposal.id] = point
        self._mark(point)
        return proposal

    def settle(self, proposal_id: int) -> dict[str, Scalar] | None:
        """Close a proposal; return its point, or None when it is not of this space.

        Raises:
            ValueError: no such proposal is open.
        """
        if proposal_id not in self._open:
            raise ValueError(
                f"proposal {proposal_id} is not open; open: {sorted(self._open) or 'none'}"
            )
        return self._open.pop(proposal_id)

    def restore(self, attempts: Iterable[Attempt]) -> list[tuple[Attempt, dict[str, Scalar]]]:
        """Take over an earlier session; return the attempts that are points of this space.

        Attempts of another action, or of a space that has changed since, keep their ids only.

        Raises:
            ValueError: proposals were made before.
        """
        if self._next_id != 1:
            raise ValueError("expected restore() before the first ask(), got it after")
        known = []
        for attempt in attempts:
            point = dict(attempt.point) if self._is_point(attempt) else None
            self._next_id = max(self._next_id, attempt.id + 1)
            if attempt.verdict is None:
                self._open[attempt.id] = point
            if point is not None:
                self._mark(point)
                known.append((attempt, point))
        return known

    def draw_untried(self, rng: random.Random) -> dict[str, Scalar] | None:
        """Return a random untried point; None when nothing is left."""
        if self._untried is not None:
            return dict(rng.choice(list(self._untried.values()))) if self._untried else None
        for _ in range(REJECTIONS):
            point = draw_point(self.space, rng)
            if not self.is_tried(point):
                return point
        return None

    def first_untried(self, points: Sequence[Point]) -> dict[str, Scalar] | None:
        """Return the first of `points` that is untried, completed; None if all were tried.

        Raises:
            ValueError: a point is not of this space.
        """
        for partial in points:
            point = self.space.complete(partial)
            if not self.is_tried(point):
                return point
        return None

    def _is_point(self, attempt: Attempt) -> bool:
        return attempt.action == ACTION and contains(self.space, attempt.point)

    def _mark(self, point: Point) -> None:
        key = point_key(point)
        self._tried.add(key)
        if self._untried is not None:
            self._untried.pop(key, None)
