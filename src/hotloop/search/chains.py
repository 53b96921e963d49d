"""Chains: a first kernel with all that was made of it, seen as one line of work.

Read from the lineage whenever a strategy decides; nothing is kept here.
"""

from __future__ import annotations

from dataclasses import dataclass

from hotloop.core.attempt import Action
from hotloop.search.lineage import Lineage, Station
from hotloop.search.progress import Progress, progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """One chain as it stands."""

    root: Station
    stations: tuple[Station, ...]
    """In order of id."""
    progress: Progress

    @property
    def best(self) -> Station | None:
        """Its fastest correct attempt; None while it has none."""
        return self.progress.best

    @property
    def open_calls(self) -> int:
        """How many of its calls await their verdict."""
        return sum(s.is_open and s.is_call for s in self.stations)

    @property
    def rank(self) -> tuple[float, int]:
        """Sorts correct chains: the fastest first, of equals the older."""
        return (self.best.objective if self.best else float("inf"), self.root.id)

    def is_left(self, lineage: Lineage) -> bool:
        """Whether a new design was asked for since its leading source took the lead."""
        designs = (s.parent for s in lineage.stations if s.action is Action.REGENERATE)
        return any(
            parent.root is self.root and (parent.order or 0) >= self.progress.led_since
            for parent in designs
            if parent is not None
        )

    def failed(self, limit: int) -> Station | None:
        """Return what to repair on the way to a first correct kernel, within `limit` in a row."""
        if self.best is not None:
            return None
        return _first_mendable(self.stations, limit)

    def failed_try(self, limit: int) -> Station | None:
        """Return a failed try to improve that is worth a repair, within `limit` in a row.

        It is not once a faster kernel than the one it came from is there.
        """
        leader = self.best.author if self.best else None
        if leader is None:
            return None
        tries = tuple(s for s in self.stations if s.tried_on is leader)
        return _first_mendable(tries, limit)


def chains_of(lineage: Lineage) -> list[Chain]:
    """Return all chains, oldest first."""
    members: dict[int, list[Station]] = {}
    for station in lineage.stations:
        members.setdefault(station.root.id, []).append(station)
    chains = []
    for stations in members.values():
        concluded = [s for s in stations if s.order is not None]
        concluded.sort(key=lambda s: s.order or 0)
        chains.append(
            Chain(root=stations[0].root, stations=tuple(stations), progress=progress(concluded))
        )
    return chains


def _first_mendable(stations: tuple[Station, ...], limit: int) -> Station | None:
    found = (
        s
        for s in stations
        if s.action is not Action.SWEEP and s.is_mendable and not s.is_mended and s.repairs < limit
    )
    return next(found, None)
