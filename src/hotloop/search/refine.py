"""RefineStrategy: one kernel, made better call by call.

A draft, repairs while it fails, then small changes of the best kernel so far, and now and then
another design. Strictly sequential: each prompt knows every verdict before it.
"""

from __future__ import annotations

from hotloop.core.attempt import Action
from hotloop.search.lineage import Station
from hotloop.search.model_strategy import REPAIRS, ModelStrategy, Move
from hotloop.search.progress import progress


class RefineStrategy(ModelStrategy):
    """Mend what failed, else improve the best; one call open at a time, whatever the width."""

    def _choose(self) -> Move | None:
        if self._lineage.open_calls:
            return None
        concluded = self._lineage.concluded
        tries = [s for s in concluded if s.action is not Action.SWEEP]
        last = next((s for s in reversed(tries) if not s.is_no_try), None)
        if last is not None and last.is_mendable and last.repairs < REPAIRS:
            return Move(action=Action.REPAIR, parent=last)
        line = progress(concluded, since=_last_regenerate(tries))
        if line.best is None:
            return Move(action=Action.DRAFT)
        if line.is_plateau:
            return Move(action=Action.REGENERATE, parent=line.best)
        return Move(action=Action.OPTIMISE, parent=line.best)


def _last_regenerate(tries: list[Station]) -> int:
    """Return the place in the order of the last regenerated design; -1 when there is none.

    One whose call failed by itself counts: where each is refused, the rest of the search goes on.
    """
    places = [s.order for s in tries if s.action is Action.REGENERATE and s.order is not None]
    return max(places, default=-1)
