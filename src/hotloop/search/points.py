"""Points of a schedule space: enumerate, draw, vary, compare.

What strategies share. Pure functions over `hotloop.core.space`; randomness comes from the caller's
generator. Conditional dimensions are resolved in the order of the space, as `Space.complete` does.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from hotloop.core.record import dumps
from hotloop.core.space import Point, Scalar, Space


def point_key(point: Point) -> str:
    """Return a text that two points share exactly if they choose the same values."""
    return dumps(point)


def enumerate_points(space: Space) -> Iterator[dict[str, Scalar]]:
    """Yield every point once, in the order of dimensions and choices."""

    def extend(partial: dict[str, Scalar], at: int) -> Iterator[dict[str, Scalar]]:
        if at == len(space.dimensions):
            yield partial
            return
        dimension = space.dimensions[at]
        if not dimension.exists(partial):
            yield from extend(partial, at + 1)
            return
        for choice in dimension.choices:
            yield from extend({**partial, dimension.name: choice}, at + 1)

    yield from extend({}, 0)


def draw_point(space: Space, rng: random.Random) -> dict[str, Scalar]:
    """Return a point whose every choice is drawn uniformly."""
    point: dict[str, Scalar] = {}
    for dimension in space.dimensions:
        if dimension.exists(point):
            point[dimension.name] = rng.choice(dimension.choices)
    return point


def neighbours(space: Space, point: Point) -> list[dict[str, Scalar]]:
    """Return the points that differ from `point` in one choice.

    An ordered dimension moves one step either way; another one takes any other choice. Dimensions
    that appear with the new choice take their defaults.
    """
    found = []
    for dimension in space.dimensions:
        if dimension.name not in point:
            continue
        here = dimension.choices.index(point[dimension.name])
        for there, choice in enumerate(dimension.choices):
            if there == here or (dimension.ordered and abs(there - here) > 1):
                continue
            found.append(_resolve(space, {**point, dimension.name: choice}))
    return found


def contains(space: Space, point: Point) -> bool:
    """Whether `point` is a complete point of the space, as it is today."""
    try:
        return point_key(space.complete(point)) == point_key(point)
    except ValueError:
        return False


def _resolve(space: Space, wanted: Point) -> dict[str, Scalar]:
    point: dict[str, Scalar] = {}
    for dimension in space.dimensions:
        if dimension.exists(point):
            point[dimension.name] = wanted.get(dimension.name, dimension.choices[0])
    return point
