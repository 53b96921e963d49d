"""Loop bounds of the attention kernel, as statements over a query tile's first and last row."""

from __future__ import annotations

import math
from collections.abc import Callable

from hotloop.core.graph import AttentionSpec
from hotloop.templates.analysis import Interval
from hotloop.templates.attention.span import Affine, Bound, Choice, Extreme, Linear, Region, Span


class BoundWriter:
    """Writes the bounds of one region. `scalar` gives the text of a node that is a scalar."""

    def __init__(self, spec: AttentionSpec, scalar: Callable[[str], str]) -> None:
        self._spec = spec
        self._scalar = scalar

    def lines(self, region: Region) -> list[str]:
        """Return statements that define first, last, full_first and full_last, in tiles."""
        some, every = region.some, region.every
        lines = [
            f"first = {self._floor_tiles(self._clamped(some.low, is_low=True))}",
            f"last = {self._ceil_tiles(self._clamped(some.high, is_low=False))}",
        ]
        if every is None:
            return [*lines, "full_first = last", "full_last = last"]
        lines.append(f"full_first = {self._ceil_tiles(self._clamped(every.low, is_low=True))}")
        lines.append(f"full_last = {self._floor_tiles(self._clamped(every.high, is_low=False))}")
        if some.low is not None or every.low is not None:  # any of the two spans may be empty
            lines += [
                "last = tl.maximum(first, last)",
                "full_first = tl.minimum(tl.maximum(full_first, first), last)",
                "full_last = tl.minimum(tl.maximum(full_last, full_first), last)",
            ]
        return lines

    @staticmethod
    def _floor_tiles(keys: str) -> str:
        return "0" if keys == "0" else f"{_in_parentheses(keys)} // BLOCK_N"

    @staticmethod
    def _ceil_tiles(keys: str) -> str:
        return "0" if keys == "0" else f"tl.cdiv({keys}, BLOCK_N)"

    def _clamped(self, bound: Bound | None, *, is_low: bool) -> str:
        """Return a number of keys in [0, KV_LEN]."""
        if bound is None:
            return "0" if is_low else "KV_LEN"
        text, reach = self._text(bound), self._reach(bound)
        if reach.high > self._spec.Skv:
            text = f"tl.minimum({text}, KV_LEN)"
        if reach.low < 0:
            text = f"tl.maximum({text}, 0)"
        return text

    def _text(self, bound: Bound) -> str:
        if isinstance(bound, Linear):
            return self._linear(bound.value, "q_last" if bound.at_last else "q_first")
        if isinstance(bound, Extreme):
            function = "tl.maximum" if bound.largest else "tl.minimum"
            text = self._text(bound.parts[0])
            for part in bound.parts[1:]:
                text = f"{function}({text}, {self._text(part)})"
            return text
        then, otherwise = self._text(bound.then), self._text(bound.otherwise)
        return f"tl.where({self._text(bound.test)} >= 0, {then}, {otherwise})"

    def _linear(self, form: Affine, row: str) -> str:
        parts = [(form.query, row)] if form.query else []
        parts += [(factor, self._scalar(name)) for factor, name in form.scalars if factor]
        text = ""
        for factor, name in parts:
            size = name if abs(factor) == 1 else f"{name} * {abs(factor)}"
            if not text:
                text = size if factor > 0 else f"-{size}"
            else:
                text += f" {'+' if factor > 0 else '-'} {size}"
        if not text:
            return str(form.constant)
        if form.constant:
            text += f" {'+' if form.constant > 0 else '-'} {abs(form.constant)}"
        return text

    def _reach(self, bound: Bound) -> Interval:
        """Return what a bound can be, over all tiles."""
        if isinstance(bound, Linear):
            if bound.value.scalars:
                return Interval(-math.inf, math.inf)
            ends = [bound.value.query * row + bound.value.constant for row in (0, self._spec.S - 1)]
            return Interval(min(ends), max(ends))
        if isinstance(bound, Extreme):
            reaches = [self._reach(p) for p in bound.parts]
            pick = max if bound.largest else min
            return Interval(pick(r.low for r in reaches), pick(r.high for r in reaches))
        assert isinstance(bound, Choice)
        sides = [self._reach(bound.then), self._reach(bound.otherwise)]
        return Interval(min(s.low for s in sides), max(s.high for s in sides))


def has_left_part(region: Region) -> bool:
    """Whether tiles before the full ones may need a mask."""
    return region.every is not None and region.every.low is not None


def scalar_nodes(region: Region) -> list[str]:
    """Return the scalar nodes that the region's bounds refer to, each once."""
    found: dict[str, None] = {}

    def visit(bound: Bound | None) -> None:
        if isinstance(bound, Linear):
            found.update(dict.fromkeys(name for _, name in bound.value.scalars))
        elif isinstance(bound, Extreme):
            for part in bound.parts:
                visit(part)
        elif isinstance(bound, Choice):
            for part in (bound.test, bound.then, bound.otherwise):
                visit(part)

    for span in (region.some, region.every or Span()):
        visit(span.low)
        visit(span.high)
    return list(found)


def _in_parentheses(text: str) -> str:
    is_call = text.startswith("tl.") and text.endswith(")")
    return text if text.isidentifier() or is_call else f"({text})"
