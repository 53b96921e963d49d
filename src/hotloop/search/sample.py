"""SampleStrategy: best of n independent drafts.

The control for everything that learns from verdicts. Without feedback every call is a draft; with
it, each draft that fails is repaired a little and each that passes gets one small change.
"""

from __future__ import annotations

from hotloop.core.attempt import Action
from hotloop.search.lineage import LAPSES, Station
from hotloop.search.model_strategy import ModelStrategy, Move

SAMPLE_REPAIRS = 2
"""Repairs of one draft."""


class SampleStrategy(ModelStrategy):
    """Draw drafts, `width` at a time; none knows of another."""

    def _choose(self) -> Move | None:
        if self._has_feedback:
            for station in self._lineage.concluded:
                move = self._follow_up(station)
                if move is not None:
                    return move
        return Move(action=Action.DRAFT)

    def _follow_up(self, station: Station) -> Move | None:
        if station.tried_on is not None or station.action is Action.SWEEP:
            return None
        if station.passed and not self._is_tried(station):
            swept = [s for s in self._lineage.concluded if s.author is station and s.passed]
            best = min(swept, key=lambda s: (s.objective, s.id))
            return Move(action=Action.OPTIMISE, parent=best)
        can_repair = station.is_mendable and not station.is_mended
        if can_repair and station.repairs < SAMPLE_REPAIRS:
            return Move(action=Action.REPAIR, parent=station)
        return None

    def _is_tried(self, author: Station) -> bool:
        tries = [s for s in self._lineage.stations if s.tried_on is author]
        return len(tries) >= LAPSES or not all(s.is_no_try for s in tries)
