"""The order in which tokens are gathered into tiles: boxes of an image, members of one class.

A tile of consecutive tokens is a few rows of an image, and a neighbourhood of it touches many of
them. A tile that is a box touches few. Rows of q, k and v are contiguous, so a box needs no copy:
the kernel computes the token at each position, and all else works with true token numbers.

Positions count tokens tile after tile. Residue classes come first (a tile is of one class), then
the boxes, then the tokens in a box, each with the highest digit first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

from hotloop.core.space import Point
from hotloop.templates.attention.digits import Digit, find_digits, spatial, without_class_tests
from hotloop.templates.attention.plan import AttentionPlan
from hotloop.templates.source import LINE_LENGTH

MAX_TENSOR_RANK = 5
"""Dimensions of a tensor that the tensor memory accelerator reads (CUDA driver API)."""

SHAPES = ("boxes", "boxes_wide", "boxes_tall")
"""Shapes of the keys' boxes: as square as can be, or longer along the lowest or highest digit.

Which visits fewest tiles depends on the window: one of 19 x 19 pixels touches fewer boxes of 4 x 16
keys than of 8 x 8. Boxes of queries are as square as can be."""


@dataclass(frozen=True)
class Box:
    """The tokens of one tile: `sides` of `digits`, highest place first."""

    digits: tuple[Digit, ...]
    sides: tuple[int, ...]

    @classmethod
    def of(cls, digits: tuple[Digit, ...], block: int, shape: str = SHAPES[0]) -> Box | None:
        """Return a box of `block` tokens, a power of two; of another shape where that fits.

        None where the digits' extents do not divide into such boxes.
        """
        sides = [1] * len(digits)
        while math.prod(sides) < block:
            free = [i for i in spatial(digits) if digits[i].extent % (2 * sides[i]) == 0]
            if not free:
                return None
            sides[min(reversed(free), key=sides.__getitem__)] *= 2
        free = spatial(digits)
        if shape == "boxes_tall":
            free = free[::-1]
        if shape != SHAPES[0] and len(free) > 1:
            shorter, longer = free[0], free[-1]
            if sides[shorter] > 1 and digits[longer].extent % (2 * sides[longer]) == 0:
                sides[shorter] //= 2
                sides[longer] *= 2
        return cls(digits, tuple(sides))

    @cached_property
    def steps(self) -> tuple[tuple[int, int], ...]:
        """(place, extent) of the digits of a position, slowest first; neighbours joined."""
        pairs = list(zip(self.digits, self.sides, strict=True))
        steps = [(d.place, d.extent) for d in self.digits if d.is_class]
        steps += [(d.place * side, d.extent // side) for d, side in pairs if not d.is_class]
        steps += [(d.place, side) for d, side in pairs]
        joined: list[tuple[int, int]] = []
        for place, extent in steps:
            if extent == 1:
                continue
            if joined and joined[-1][0] == place * extent:
                joined[-1] = (place, joined[-1][1] * extent)
            else:
                joined.append((place, extent))
        return tuple(joined)

    @property
    def is_consecutive(self) -> bool:
        """Whether the token at each position is the position itself."""
        return len(self.steps) == 1

    def token(self, position: int) -> int:
        """Return the token at `position`, as the generated kernel computes it."""
        number, below = 0, 1
        for place, extent in reversed(self.steps):
            number += position // below % extent * place
            below *= extent
        return number

    def text(self) -> str:
        """Return the token at `position` as an expression of Triton, digit by digit."""
        terms: list[str] = []
        below = math.prod(extent for _, extent in self.steps)
        for place, extent in self.steps:
            below //= extent
            term = "position" if below == 1 else f"position // {below}"
            if terms:  # the slowest digit has nothing above it
                term += f" % {extent}"
            terms.append(term if place == 1 else f"{term} * {place}")
        in_one_line = " + ".join(terms)
        if len(in_one_line) <= LINE_LENGTH - len("    return "):
            return in_one_line
        return "(\n        " + "\n        + ".join(terms) + "\n    )"

    def coordinates(self, head: str, first: str) -> list[str]:
        """Return where the tile that begins at token `first` lies in a tensor of `shape`."""
        top, *rest = self.digits
        found = [f"{head} * {top.extent} + {first} // {top.place}"]
        for digit in rest:
            shifted = first if digit.place == 1 else f"{first} // {digit.place}"
            found.append(f"{shifted} % {digit.extent}")
        return [*found, "0"]

    def shape(self) -> str:
        """Return q, k or v's shape by digits; heads are part of the highest one."""
        return ", ".join(["-1", *(str(d.extent) for d in self.digits[1:]), "D.value"])

    def block(self) -> str:
        """Return the shape of a tile in a tensor of `shape`."""
        return ", ".join([*(str(side) for side in self.sides), "BLOCK_D.value"])

    def __str__(self) -> str:
        return " x ".join(str(side) for side in self.sides)


@dataclass(frozen=True)
class TokenOrder:
    """The boxes of queries and keys at one schedule point."""

    query: Box
    key: Box

    def functions(self) -> tuple[str, ...]:
        """Return device functions from positions to tokens."""
        return tuple(
            f'@triton.jit\ndef {name}_token(position):\n    """Return the {what} at a position '
            f'in the order of the tiles, boxes of {box}."""\n    return {box.text()}'
            for name, what, box in (("query", "query", self.query), ("key", "key", self.key))
        )


def box_of(plan: AttentionPlan, axis: str, block: int, shape: str = SHAPES[0]) -> Box | None:
    """Return the box of `block` tokens of an axis (`query`, `key`); None where there is none."""
    if plan.mask is None:
        return None
    length = plan.spec.S if axis == "query" else plan.spec.Skv
    digits = find_digits(plan.mask, length)
    if not digits or len(digits) >= MAX_TENSOR_RANK:
        return None
    return Box.of(digits, block, shape)


def token_order(plan: AttentionPlan, point: Point) -> TokenOrder | None:
    """Return the boxes of a schedule point; None where tokens stay in their order."""
    shape = str(point.get("token_order", "rows"))
    if shape == "rows":
        return None
    query = box_of(plan, "query", int(point["BLOCK_M"]))
    key = box_of(plan, "key", int(point["BLOCK_N"]), shape)
    if query is None or key is None:
        raise ValueError(f"the tokens do not divide into boxes at {dict(point)}")
    return TokenOrder(query, key)


def in_listed_tiles(plan: AttentionPlan, order: TokenOrder | None, point: Point) -> AttentionPlan:
    """Return the problem as it is in tiles that a list names: of one class, queries and keys."""
    if order is None or plan.mask is None or point["tiles"] != "lists":
        return plan
    return AttentionPlan(replace(plan.spec, mask_mod=without_class_tests(plan.mask)))
