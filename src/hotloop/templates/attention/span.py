"""Spans of keys whose ends are affine in a query tile's first and last row, and their algebra.

A `Region` has two spans: the keys that some row of a tile may see, and those that every row sees.
Joining regions is safe in both directions: `some` only grows and `every` only shrinks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Affine:
    """query * q + key * kv + constant + sum of (factor * scalar node)."""

    query: int = 0
    key: int = 0
    constant: int = 0
    scalars: tuple[tuple[int, str], ...] = ()
    """Nodes that are one number per program, with their factors."""

    def plus(self, other: Affine, factor: int = 1) -> Affine:
        """Return self + factor * other."""
        scaled = tuple((factor * f, name) for f, name in other.scalars)
        return Affine(
            self.query + factor * other.query,
            self.key + factor * other.key,
            self.constant + factor * other.constant,
            self.scalars + scaled,
        )

    def times(self, factor: int) -> Affine:
        """Return factor * self."""
        return Affine().plus(self, factor)


# --- bounds: integer expressions in the first and last row of a tile ---


@dataclass(frozen=True, slots=True)
class Linear:
    """`value` with its `query` part taken at the tile's first or last row."""

    value: Affine
    at_last: bool


@dataclass(frozen=True, slots=True)
class Extreme:
    """The smallest or largest of several bounds."""

    largest: bool
    parts: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """`then` where the tested bound is at least 0, else `otherwise`."""

    test: Linear
    then: Bound
    otherwise: Bound


Bound = Linear | Extreme | Choice


@dataclass(frozen=True, slots=True)
class Span:
    """Keys from `low` up to but without `high`; None means no limit on that side."""

    low: Bound | None = None
    high: Bound | None = None


@dataclass(frozen=True, slots=True)
class Region:
    """What a mask keeps of a query tile."""

    some: Span = Span()
    every: Span | None = None
    """None: no key is known to be seen by every row."""
    is_exact: bool = False


EVERYTHING = Region(every=Span(), is_exact=True)
UNDERSTOOD_NOTHING = Region()


def evaluate(bound: Bound, *, q_first: int, q_last: int, scalars: Mapping[str, int]) -> int:
    """Return the number that `bound` stands for, as the generated kernel computes it."""

    def value(part: Bound) -> int:
        if isinstance(part, Linear):
            form = part.value
            row = q_last if part.at_last else q_first
            own = sum(factor * scalars[name] for factor, name in form.scalars)
            return form.query * row + form.constant + own
        if isinstance(part, Extreme):
            return (max if part.largest else min)(value(p) for p in part.parts)
        return value(part.then if value(part.test) >= 0 else part.otherwise)

    return value(bound)


ZERO = Linear(Affine(), at_last=False)
NO_LIMIT = Linear(Affine(constant=2**30), at_last=False)
"""Past every key: lengths are far below 2^30."""
NOTHING = Region(some=Span(high=ZERO), every=None, is_exact=True)


def _extreme(a: Bound | None, b: Bound | None, *, largest: bool, tighten: bool) -> Bound | None:
    """Join two limits; None is no limit, which loses when tightening and wins when loosening."""
    if a is None or b is None:
        return (a or b) if tighten else None
    if a == b:
        return a
    parts: list[Bound] = []
    for bound in (a, b):
        same = isinstance(bound, Extreme) and bound.largest == largest
        parts.extend(bound.parts if isinstance(bound, Extreme) and same else (bound,))
    return Extreme(largest, tuple(parts))


def _join(a: Span, b: Span, *, tighten: bool) -> Span:
    return Span(
        _extreme(a.low, b.low, largest=tighten, tighten=tighten),
        _extreme(a.high, b.high, largest=not tighten, tighten=tighten),
    )


def intersect(a: Region, b: Region) -> Region:
    """Return the region of `a and b`."""
    every = None
    if a.every is not None and b.every is not None:
        every = _join(a.every, b.every, tighten=True)
    return Region(_join(a.some, b.some, tighten=True), every, a.is_exact and b.is_exact)


def unite(a: Region, b: Region) -> Region:
    """Return the region of `a or b`."""
    for one, other in ((a, b), (b, a)):
        if one == NOTHING:
            return other
    some = _join(a.some, b.some, tighten=False)
    is_exact = a.is_exact and b.is_exact and _share_an_open_end(a.some, b.some)
    if a.every is None or b.every is None:
        return Region(some, a.every or b.every, is_exact)
    if _share_an_open_end(a.every, b.every):
        return Region(some, _join(a.every, b.every, tighten=False), is_exact)
    return Region(some, a.every, is_exact=False)


def _share_an_open_end(a: Span, b: Span) -> bool:
    """Whether the union of the two spans is a span: both are open on the same side."""
    return (a.low is None and b.low is None) or (a.high is None and b.high is None)
