"""HybridStrategy: width until something is correct, then depth on the best few designs.

Width: parallel drafts of different ideas, each mended while it fails. The first correct kernel ends
it. Depth: the best correct designs share the calls, the best of them gets most; a design that no
longer gets faster is left for a new one. Published comparisons at equal budgets agree on the
outline: breadth finds correct kernels, depth makes them fast, and now and then a large change is
needed to leave a dead end.
"""

from __future__ import annotations

from collections import Counter

from hotloop.core.attempt import Action
from hotloop.core.verdict import Stage, Status
from hotloop.search.chains import Chain, chains_of
from hotloop.search.lineage import Station
from hotloop.search.model_strategy import REPAIRS, ModelStrategy, Move

IDEAS = 4
"""Drafts that carry out an idea, where the width is less: the later ones replace what failed."""

TRY_REPAIRS = 2
"""Repairs in a row of a failed try to improve, before going back to the best of its chain."""

WEIGHTS = (2, 1, 1)
"""Shares of the best designs in the calls; there are no more than these."""

RECENT = 2 * sum(WEIGHTS) - 1
"""Calls over which shares are kept: two rounds, the next call being the last of the second."""

RESTARTS = 2
"""New designs under way at a time once every correct one is on a plateau."""

SHALLOW = frozenset(
    {
        Status.COMPILE_ERROR,
        Status.INCORRECT_SHAPE,
        Status.INCORRECT_DTYPE,
        Status.INCORRECT_NUMERICAL,
        Status.INPUT_MODIFIED,
    }
)
"""Failures that one more repair often ends."""

_LADDER = list(Stage)


class HybridStrategy(ModelStrategy):
    """Drafts of ideas side by side, then the best two or three designs in depth."""

    def _choose(self) -> Move | None:
        chains = chains_of(self._lineage)
        if any(chain.best is not None for chain in chains):
            return self._deepen(chains)
        return self._widen(chains)

    def _widen(self, chains: list[Chain]) -> Move:
        """Nothing is correct yet: the starting kernel mended, ideas drafted, failures mended."""
        failed = [s for chain in chains if (s := chain.failed(REPAIRS)) is not None]
        from_start = [s for s in failed if s.root.action is Action.START]
        if from_start:
            return Move(action=Action.REPAIR, parent=from_start[0])
        ideas = sum("idea" in chain.root.point for chain in chains)
        if failed and ideas >= self._width:
            return Move(action=Action.REPAIR, parent=min(failed, key=_promise))
        has_idea = ideas < max(self._width, IDEAS)
        return Move(action=Action.DRAFT, point={"idea": ideas} if has_idea else {})

    def _deepen(self, chains: list[Chain]) -> Move | None:
        """Something is correct: new designs that are due, then improvements, then idle slots."""
        correct = sorted((c for c in chains if c.best is not None), key=lambda c: c.rank)
        focus = [c for c in correct if not c.progress.is_plateau][: len(WEIGHTS)]
        return (
            self._mend_new_design(chains)
            or self._leave_plateau(correct)
            or self._improve(focus, is_capped=True)
            or self._rescue(chains)
            or self._improve(focus, is_capped=False)
            or self._restart(chains, correct)
        )

    def _mend_new_design(self, chains: list[Chain]) -> Move | None:
        """Repair what was regenerated and does not pass yet."""
        for chain in chains:
            failed = chain.failed(REPAIRS)
            if chain.root.action is Action.REGENERATE and failed is not None:
                return Move(action=Action.REPAIR, parent=failed)
        return None

    def _leave_plateau(self, correct: list[Chain]) -> Move | None:
        """Regenerate once from each of the best kernels on a plateau."""
        for chain in correct[: len(WEIGHTS)]:
            if chain.progress.is_plateau and not chain.is_left(self._lineage):
                return Move(action=Action.REGENERATE, parent=chain.best)
        return None

    def _improve(self, focus: list[Chain], *, is_capped: bool) -> Move | None:
        """Give the call to the design that is furthest behind its share.

        Capped, a design has no more calls open than its weight.
        """
        tries = [s for s in self._lineage.stations if s.is_call and s.tried_on is not None]
        recent = Counter(s.root.id for s in tries[-RECENT:])
        weighted = [
            ((recent[chain.root.id] + 1) / weight, place, chain)
            for place, (chain, weight) in enumerate(zip(focus, WEIGHTS, strict=False))
            if not is_capped or chain.open_calls < weight
        ]
        if not weighted:
            return None
        _, _, chain = min(weighted, key=lambda entry: entry[:2])
        failed = chain.failed_try(TRY_REPAIRS)
        if failed is not None:
            return Move(action=Action.REPAIR, parent=failed)
        return Move(action=Action.OPTIMISE, parent=chain.best)

    def _rescue(self, chains: list[Chain]) -> Move | None:
        """Repair a first design that nearly works once more, in a slot that would be idle."""
        passed = next(s.order for s in self._lineage.concluded if s.passed) or 0
        for chain in chains:
            failed = chain.failed(REPAIRS)
            if failed is None or failed.status not in SHALLOW:
                continue
            was_rescued = failed.action is Action.REPAIR and _concluded_after(failed.parent, passed)
            if not was_rescued:
                return Move(action=Action.REPAIR, parent=failed)
        return None

    def _restart(self, chains: list[Chain], correct: list[Chain]) -> Move | None:
        """Every correct design is on a plateau: look for others, a few at a time."""
        under_way = [c for c in chains if c.best is None and c.open_calls]
        if len(under_way) >= RESTARTS:
            return None
        return Move(action=Action.REGENERATE, parent=correct[0].best)


def _promise(station: Station) -> tuple[int, int, int]:
    """Sort key: what got furthest up the ladder first, then what was mended least."""
    stage = _LADDER.index(station.stage) if station.stage is not None else -1
    return (-stage, station.repairs, station.id)


def _concluded_after(station: Station | None, place: int) -> bool:
    return station is not None and station.order is not None and station.order > place
