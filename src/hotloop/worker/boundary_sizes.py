"""Sizes at which kernels break: values for a problem's size constants, chosen, not yet tried.

A dimension gets a value beside a tile's edge, a prime, a number that is no multiple of 8, or 1; the
other dimensions get such values too where the reference bears it. Shapes stay small: what is wrong
at 129 columns is wrong at 100,001, and a call takes no time.

Not here: whether the reference accepts the sizes (`size_trial.py`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

Sizes = dict[str, int]

EDGES = (16, 32, 64, 128)
VALUES: Mapping[str, tuple[int, ...]] = {
    "above": tuple(edge + 1 for edge in EDGES),
    "below": tuple(edge - 1 for edge in EDGES),
    "tile": EDGES,
    "prime": (7, 13, 29, 53, 101, 109),
    "odd": (12, 20, 44, 100, 116),
    "one": (1,),
}
"""What a dimension may be, by kind; `odd` is no multiple of 8."""
SMALL = (2, 3, 5, 7)
"""For dimensions that are smaller than a tile in the problem."""
SHOWN = ("above", "below", "one", "tile")
"""Kind of the first dimension of each shape that a model may be told."""
HELD_OUT = ("prime", "odd", "below")
"""The same of shapes that are never shown: 3 of 7, and no less than `HELD_OUT_FRAC`."""
HELD_OUT_FRAC = 0.3
OTHERS = ("above", "below", "prime", "odd")
"""Kinds of a shape's further dimensions."""
GROWTH = 2
"""A dimension grows at most by this factor."""
MAX_HALVINGS = 24


@dataclass(frozen=True, slots=True)
class SizeSpace:
    """A problem's size constants, and how large a shape they make."""

    nominal: Sizes
    """Constants that are dimensions of inputs, with the problem's own values."""
    structural: frozenset[str]
    """Those of them that the constructor's arguments or the parameters depend on."""
    measure: Callable[[Sizes], int | None]
    """Elements that a shape takes; None where the problem has no such shape."""
    limit: int
    """Elements that a shape may take."""

    def fits(self, sizes: Sizes) -> bool:
        """Whether the problem has such a shape and it is small enough."""
        elements = self.measure(sizes)
        return elements is not None and elements <= self.limit

    def shrunk(self) -> Sizes | None:
        """Return the problem's own sizes, halved until they fit; None when they never do."""
        for changed in (frozenset(self.nominal), frozenset(self.nominal) - self.structural):
            for halvings in range(MAX_HALVINGS):
                sizes = {
                    name: max(1, size >> halvings) if name in changed else size
                    for name, size in self.nominal.items()
                }
                if self.fits(sizes):
                    return sizes
        return None


def proposals(
    space: SizeSpace, kind: str, covered: set[str], rng: random.Random
) -> Iterator[Sizes]:
    """Yield sizes for one shape, the most telling first; each fits the space.

    All dimensions at once; then without those that the parameters depend on; then one alone, those
    that are not `covered` yet first.
    """
    base = space.shrunk()
    if base is None:
        return
    everything = sorted(space.nominal)
    rng.shuffle(everything)
    everything.sort(key=lambda name: name in covered)
    free = [name for name in everything if name not in space.structural]
    seen: list[Sizes] = []
    for varied in (everything, free, *([name] for name in everything)):
        sizes = _varied(space, base, varied, kind, rng)
        if sizes is not None and sizes not in seen:
            seen.append(sizes)
            yield sizes


def _varied(
    space: SizeSpace, base: Sizes, varied: list[str], kind: str, rng: random.Random
) -> Sizes | None:
    """Return sizes in which each of `varied` has a new value; None where nothing fits."""
    if not varied:
        return None
    kinds = [kind, *(rng.choice(OTHERS) for _ in varied[1:])]
    choices = {
        name: values_of(which, space.nominal[name])
        for name, which in zip(varied, kinds, strict=True)
    }
    if not all(choices.values()):
        return None
    # The larger ones: what a kernel does with its second block shows at more than one.
    at = {n: rng.randrange(len(values) // 2, len(values)) for n, values in choices.items()}
    while True:
        sizes = {**base, **{name: choices[name][i] for name, i in at.items()}}
        elements = space.measure(sizes)
        if elements is None:
            return None
        if elements <= space.limit:
            return sizes
        lower = [name for name, i in at.items() if i]
        if not lower:
            return None
        at[rng.choice(lower)] -= 1


def values_of(kind: str, nominal: int) -> tuple[int, ...]:
    """Return the values of a kind for a dimension of this size, ascending.

    None of them is the size itself or a half, a quarter, ... of it: those are tried where a model
    is told smaller sizes at which its kernel fails.
    """
    own = {nominal >> halvings for halvings in range(MAX_HALVINGS)} - {0}
    if kind == "one":
        return () if nominal == 1 else (1,)
    values = [v for v in VALUES[kind] if v <= GROWTH * nominal]
    return tuple(v for v in values or SMALL if kind == "tile" or v not in own) or (nominal + 1,)
