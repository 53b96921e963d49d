"""Where an output is wrong, in words: its box and the patterns along each dimension."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

_DIAGONAL = {
    "above": "above the diagonal of the last two dimensions (column > row)",
    "below": "below the diagonal of the last two dimensions (column < row)",
    "on": "on the diagonal of the last two dimensions",
}


def axis_names(dims: int, *, is_attention: bool) -> Callable[[int], str]:
    """Return the words for each dimension of an output."""
    names: tuple[str, ...] = ()
    if is_attention and dims == 4:
        names = ("batch", "head", "query row", "column of D")
    elif dims == 2:
        names = ("row", "column")

    def axis(dim: int) -> str:
        return f"dimension {dim} ({names[dim]})" if dim < len(names) else f"dimension {dim}"

    return axis


def describe_place(
    box: Sequence[tuple[int, int]],
    patterns: Sequence[Mapping[str, Any]],
    shape: Sequence[int],
    axis: Callable[[int], str],
) -> str:
    """Return where all elements of a region lie; empty when that is not known."""
    told = [text for pattern in patterns if (text := describe_pattern(pattern, axis))]
    if told:
        rest = "" if len(told) == len(shape) else ", at any index of the other dimensions"
        return " and ".join(told) + rest
    if not box:
        return ""
    if all((lo, hi) == (0, size - 1) for (lo, hi), size in zip(box, shape, strict=False)):
        return "places all over the output"
    return "[" + ", ".join(f"{lo}..{hi}" for lo, hi in box) + "]"


def describe_pattern(pattern: Mapping[str, Any], axis: Callable[[int], str]) -> str:
    """Return the indices of one dimension that hold wrong elements; empty if it cannot be read."""
    try:
        return _pattern(pattern, axis(int(pattern["dim"])))
    except (KeyError, TypeError, ValueError):
        return ""  # of another version: what cannot be read is left out


def _pattern(pattern: Mapping[str, Any], dim: str) -> str:
    kind, size = pattern["kind"], int(pattern["size"])
    if kind == "one":
        return f"only index {int(pattern['at'])} of {size} in {dim}"
    if kind == "range":
        first, last = int(pattern["from"]), int(pattern["to"])
        return f"{first}..{last} of {size} in {dim}{_block(pattern, first, last, size)}"
    if kind == "every":
        return f"every {int(pattern['step'])}th index of {dim}, from {int(pattern['from'])}"
    if kind == "period":
        low, high = int(pattern["from"]), int(pattern["to"])
        return f"places {low}..{high} of each {int(pattern['period'])} in {dim}"
    if kind == "some":
        return f"{int(pattern['count'])} of {size} indices of {dim}"
    return ""


def _block(pattern: Mapping[str, Any], first: int, last: int, size: int) -> str:
    block = pattern.get("block")
    if not isinstance(block, int):
        return ""
    if last == size - 1 and size % block:
        return f" (the last, partial block of {block})" if last - first < block else ""
    if last - first + 1 == block:
        return f" (the last block of {block})" if last == size - 1 else f" (one block of {block})"
    return ""


def describe_diagonal(side: object) -> str:
    """Return on which side of the diagonal all wrong elements are; empty when not known."""
    told = _DIAGONAL.get(side) if isinstance(side, str) else None
    return f"All wrong elements lie {told}: look at the triangular part." if told else ""
