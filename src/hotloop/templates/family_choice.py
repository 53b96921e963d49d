"""Several kernel families for one problem: which one is best is found by measurement.

Their spaces become one, with a first dimension `family`. The dimensions of all but the last family
carry the family's name, because equal names may have other choices there; those of the last, the
portable one, keep theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain, zip_longest
from typing import Protocol

from hotloop.core.candidate import Candidate
from hotloop.core.space import Dimension, Point, Space

FAMILY = "family"


class Family(Protocol):
    """One kind of kernel, for one problem."""

    def space(self) -> Space:
        """Return the schedules."""

    def render(self, point: Point) -> Candidate:
        """Return the kernel at a complete schedule point."""


class FamilyChoice:
    """Two or more families, best guess first."""

    def __init__(self, families: Mapping[str, Family]) -> None:
        self._families = dict(families)
        self._portable = list(self._families)[-1]

    def space(self) -> Space:
        """Return the union of the spaces; their starts take turns."""
        names = tuple(self._families)
        dimensions = [Dimension(name=FAMILY, choices=names)]
        starts: list[list[Point]] = []
        for name, family in self._families.items():
            space = family.space()
            dimensions += [self._qualified(name, d) for d in space.dimensions]
            starts.append([self._outer(name, start) for start in space.starts])
        in_turns = chain.from_iterable(zip_longest(*starts))
        return Space(
            dimensions=tuple(dimensions), starts=tuple(s for s in in_turns if s is not None)
        )

    def render(self, point: Point) -> Candidate:
        """Return the kernel at a complete point."""
        name = str(point[FAMILY])
        inner = {self._inner_name(name, k): v for k, v in point.items() if k != FAMILY}
        return self._families[name].render(inner)

    def _qualified(self, family: str, dimension: Dimension) -> Dimension:
        when = {self._outer_name(family, n): values for n, values in dimension.when.items()}
        name = self._outer_name(family, dimension.name)
        return replace(dimension, name=name, when={FAMILY: (family,), **when})

    def _outer(self, family: str, point: Point) -> Point:
        return {FAMILY: family, **{self._outer_name(family, n): v for n, v in point.items()}}

    def _outer_name(self, family: str, name: str) -> str:
        return name if family == self._portable else f"{family}_{name}"

    def _inner_name(self, family: str, name: str) -> str:
        return name if family == self._portable else name.removeprefix(f"{family}_")
