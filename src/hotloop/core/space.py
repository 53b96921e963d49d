"""Schedule space: what a generator lets a strategy choose.

A `Space` is a list of named dimensions with finite choices; a `Point` picks one of each. A
dimension may exist only for some values of an earlier one (`when`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Scalar = int | float | str | bool
Point = Mapping[str, Scalar]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """One choice of a schedule."""

    name: str
    choices: tuple[Scalar, ...]
    """At least one; the first is the default."""
    when: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict)
    """Earlier dimensions and the values for which this one exists; empty: always."""
    ordered: bool = False
    """Whether neighbouring choices behave alike (tile sizes, warps)."""

    def exists(self, point: Point) -> bool:
        """Whether this dimension is part of `point` so far."""
        return all(point.get(name) in values for name, values in self.when.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """All schedules of one problem, with a few starting points known to be reasonable anywhere."""

    dimensions: tuple[Dimension, ...]
    starts: tuple[Point, ...] = ()

    def complete(self, partial: Point) -> dict[str, Scalar]:
        """Return `partial` with defaults filled in and dimensions that do not exist left out.

        Raises:
            ValueError: a name is unknown or a value is not among the choices.
        """
        known = {d.name for d in self.dimensions}
        unknown = sorted(set(partial) - known)
        if unknown:
            raise ValueError(f"unknown schedule dimensions {unknown}; known: {sorted(known)}")
        point: dict[str, Scalar] = {}
        for dim in self.dimensions:
            if not dim.exists(point):
                continue
            value = partial.get(dim.name, dim.choices[0])
            if value not in dim.choices:
                raise ValueError(f"{dim.name}={value!r} is not one of {list(dim.choices)}")
            point[dim.name] = value
        return point
