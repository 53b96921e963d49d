"""Sweeps: the tunables that a correct kernel declares, tried without a model.

What a GPU does while calls are under way, and with the end of a budget. The best kernels come
first; of each, the neighbours of its best known point, then points in a seeded order. Nothing is
kept here: which points were tried is read from the lineage.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass

from hotloop.core.attempt import Action
from hotloop.core.space import Point, Scalar, Space
from hotloop.search.lineage import Lineage, Station
from hotloop.search.points import contains, draw_point, enumerate_points, neighbours, point_key

POINTS_PER_SOURCE = 24
"""Sweeps of one source at most: a pass over every neighbour and some more."""

SWEPT_SOURCES = 8
"""How many of the best sources are swept: the others are too far behind to win by their values."""

LISTED_POINTS = 4_096
"""Spaces up to this size are listed and shuffled; from larger ones points are drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """One point to try."""

    source: Station
    """The attempt whose source it is and whose tunables `point` sets."""
    point: dict[str, Scalar]


def next_sweep(lineage: Lineage, seed: int) -> Sweep | None:
    """Return the sweep to do next; None when nothing that is worth it is untried."""
    sources = _sources(lineage.concluded)
    sweeps = [s for s in lineage.stations if s.action is Action.SWEEP]
    ranked = sorted(sources, key=lambda s: (_best_of(s, sweeps).objective, s.id))
    for source in ranked[:SWEPT_SOURCES]:
        point = _next_point(source, sweeps, seed)
        if point is not None:
            return Sweep(source=source, point=point)
    return None


def _sources(concluded: Sequence[Station]) -> list[Station]:
    """Return the correct attempts that declare tunables, each source once."""
    found: dict[str, Station] = {}
    for station in concluded:
        is_source = station.passed and station.action is not Action.SWEEP
        if is_source and station.declared is not None and station.declared.dimensions:
            found.setdefault(station.source_id, station)
    return list(found.values())


def _best_of(source: Station, sweeps: Sequence[Station]) -> Station:
    mine = [s for s in sweeps if s.parent is source and s.passed]
    return min([source, *mine], key=lambda s: (s.objective, s.id))


def _next_point(source: Station, sweeps: Sequence[Station], seed: int) -> dict[str, Scalar] | None:
    space = source.declared
    mine = [s for s in sweeps if s.parent is source]
    if space is None or len(mine) >= POINTS_PER_SOURCE:
        return None
    default = space.complete({})
    tried = {point_key(default), *(point_key(s.point) for s in mine)}
    best = _best_of(source, mine)
    here = default if best is source else best.point
    near = neighbours(space, here) if contains(space, here) else []
    for point in itertools.chain(near, _shuffled(space, seed, source.id)):
        if point_key(point) not in tried:
            return dict(point)
    return None


def _shuffled(space: Space, seed: int, source_id: int) -> list[Point]:
    """Return points in an order that depends on nothing else; all of them where they are few."""
    rng = random.Random(f"{seed}/{source_id}")
    points: list[Point] = list(itertools.islice(enumerate_points(space), LISTED_POINTS + 1))
    if len(points) <= LISTED_POINTS:
        rng.shuffle(points)
        return points
    # Twice the cap and one: neighbours that were tried before cannot use them up.
    return [draw_point(space, rng) for _ in range(2 * POINTS_PER_SOURCE + 1)]
