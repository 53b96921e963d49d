"""Laws of wrong indices: from where an output reads, and from where it should, to one rule.

A probe (`index_probe.py`) finds for each wrong element which element of an input it is made from,
in the candidate and in the reference. Each law says what the first is, given the second. One is
told only if at least `FOLLOWED_FRAC` of the checked elements follow it. An element that the law
leaves where it belongs does not: it is wrong for another reason. One whose source lies outside of
the input, by the law, follows it if the probe found that it reads nothing that is known.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

FOLLOWED_FRAC = 0.95
MIN_CHECKED = 16
TOLERANCE = 0.25
"""Of an index; sums over several elements have their centre of mass as their index."""
TILES = (2, 4, 8, 16, 32, 64, 128, 256)
BLOCKS = (1024, 512, 256, 128, 64, 32, 16, 8, 4, 2)
EXAMPLES = 3
Law = dict[str, Any]
Guess = tuple[Law, Tensor]
"""A law and, by it, the sources of all elements."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Where N wrong elements come from; the input has D dimensions, the output E."""

    at: Tensor
    """(N, E) int64: the index of each element in the output."""
    out_shape: tuple[int, ...]
    belongs: Tensor
    """(N, D) float64: the index in the input that the reference reads."""
    reads: Tensor
    """(N, D) float64: the index that the candidate reads."""
    sound: Tensor
    """(N,) bool: the candidate reads the right amount, wherever from."""
    shape: tuple[int, ...]
    """Shape of the input."""
    summed: tuple[bool, ...]
    """Whether each element of the output reads the whole of a dimension of the input."""


def find_law(sources: Sources) -> Law | None:
    """Return the law that most elements follow, with `share` and `examples`; None without one.

    `shift` {dim, by, wraps or clamps}: reads i + by where i belongs. `index` {dim, reads, belongs}:
    reads one index where one other belongs. `constant` {dim, index}. `reversed` {dim}. `block`
    {dim, block}: counts within its block. `repeats` {dim, block}: a sum over the dimension reads
    its first block only. `transposed` {dims}. `tile` {dims, tile, within}: transposed within each
    tile, or tiles exchanged whole. `mixed` {dims}: one flat index taken apart in the wrong order.
    `modulo`, `divided` {dim, out_dim}: another way from an output's index to the input's. `stride`
    {dim, stride, right}, `layout` {dims}: addressed as if stored otherwise. `flat` {by}: elements
    further in memory.
    """
    if sources.belongs.shape[0] < MIN_CHECKED:
        return None
    best: Law | None = None
    least = FOLLOWED_FRAC
    for law, predicted in _guesses(sources):
        follows = _follows(sources, predicted)
        share = float(follows.to(torch.float64).mean().item())
        if share < least or (best is not None and share == least):
            continue
        best, least = (
            {**law, "share": share, "examples": _examples(sources, predicted, follows)},
            share,
        )
        if share == 1.0:
            break
    return best


def _follows(sources: Sources, predicted: Tensor) -> Tensor:
    top = torch.tensor(sources.shape, dtype=torch.float64, device=predicted.device) - 1
    inside = ((predicted >= -TOLERANCE) & (predicted <= top + TOLERANCE)).all(dim=1)
    match = _near(sources.reads, predicted) & ~_near(predicted, sources.belongs) & sources.sound
    follows = torch.where(inside, match, ~sources.sound)
    # Most of the evidence must be elements that were read, not some that could not be.
    return follows if 2 * int(match.sum()) >= match.numel() else torch.zeros_like(follows)


def _near(a: Tensor, b: Tensor) -> Tensor:
    return ((a - b).abs() <= TOLERANCE).all(dim=1)


def _guesses(sources: Sources) -> Iterator[Guess]:
    dims = [dim for dim, size in enumerate(sources.shape) if size > 1]
    for dim in dims:  # first: with two heads any other one is a shift, too
        yield from _from_output(sources, dim)
    for dim in dims:
        yield from _along(sources, dim)
    for a, b in itertools.combinations(dims, 2):
        yield from _between(sources, a, b)
    for dim in dims:
        yield from _crossed(sources, dim)
    yield from _in_memory(sources, dims)


def _along(sources: Sources, dim: int) -> Iterator[Guess]:
    """Yield laws of one dimension."""
    size, here = sources.shape[dim], sources.belongs[:, dim]
    moved = sources.sound & ((sources.reads[:, dim] - here).abs() > TOLERANCE)
    if 2 * int(moved.sum()) < moved.numel():
        return
    source = _mode(sources.reads[moved, dim])
    if sources.summed[dim]:
        for block in (b for b in BLOCKS if b < size and size % b == 0):
            middle = torch.full_like(here, (block - 1) / 2)
            yield {"kind": "repeats", "dim": dim, "block": block}, _put(sources, dim, middle)
        return
    by = _mode(sources.reads[moved, dim] - here[moved])
    if bool(((here - here[0]).abs() <= TOLERANCE).all()) and _is_whole(here):
        if isinstance(source, int):
            law = {"kind": "index", "dim": dim, "reads": source, "belongs": round(float(here[0]))}
            yield law, _put(sources, dim, torch.full_like(here, source))
        return
    if by and isinstance(by, int) and abs(by) < size:
        law = {"kind": "shift", "dim": dim, "by": by}
        yield law, _put(sources, dim, here + by)
        yield {**law, "wraps": True}, _put(sources, dim, (here + by) % size)
        yield {**law, "clamps": True}, _put(sources, dim, (here + by).clamp(0, size - 1))
    if isinstance(source, int):
        law = {"kind": "constant", "dim": dim, "index": source}
        yield law, _put(sources, dim, torch.full_like(here, source))
    yield {"kind": "reversed", "dim": dim}, _put(sources, dim, size - 1 - here)
    for block in (b for b in BLOCKS if b < size):
        yield {"kind": "block", "dim": dim, "block": block}, _put(sources, dim, here % block)


def _between(sources: Sources, a: int, b: int) -> Iterator[Guess]:
    """Yield laws that mix two dimensions."""
    first, second = sources.belongs[:, a], sources.belongs[:, b]
    yield {"kind": "transposed", "dims": [a, b]}, _put(sources, a, second, b, first)
    if _is_whole(first) and _is_whole(second):
        flat = first * sources.shape[b] + second
        mixed = _put(
            sources, a, flat % sources.shape[a], b,
            torch.div(flat, sources.shape[a], rounding_mode="floor"),
        )  # fmt: skip
        yield {"kind": "mixed", "dims": [a, b]}, mixed
    for tile in (t for t in TILES if t < max(sources.shape[a], sources.shape[b])):
        place_a, place_b = first % tile, second % tile
        law = {"kind": "tile", "dims": [a, b], "tile": tile}
        yield (
            {**law, "within": True},
            _put(sources, a, first - place_a + place_b, b, second - place_b + place_a),
        )
        yield (
            {**law, "within": False},
            _put(sources, a, second - place_b + place_a, b, first - place_a + place_b),
        )


def _from_output(sources: Sources, dim: int) -> Iterator[Guess]:
    """Yield laws by which several indices of the output share one of the input, as heads do."""
    size = sources.shape[dim]
    for out, out_size in enumerate(sources.out_shape):
        if out_size <= size or out_size % size:
            continue
        place = sources.at[:, out].to(torch.float64)
        law = {"dim": dim, "out_dim": out}
        yield {"kind": "modulo", **law}, _put(sources, dim, place % size)
        yield (
            {"kind": "divided", **law},
            _put(sources, dim, torch.div(place, out_size // size, rounding_mode="floor")),
        )


def _crossed(sources: Sources, dim: int) -> Iterator[Guess]:
    """Yield laws by which one index of the output stands for another, everywhere or in tiles."""
    here = sources.belongs[:, dim]
    places = [sources.at[:, out].to(torch.float64) for out in range(len(sources.out_shape))]
    for own, other in itertools.permutations(range(len(places)), 2):
        if not bool(((places[own] - here).abs() <= TOLERANCE).all()):
            continue
        law = {"kind": "crossed", "dim": dim, "out_dims": [own, other]}
        yield law, _put(sources, dim, places[other])
        for tile in (t for t in TILES if t < sources.out_shape[own]):
            place = places[own] - places[own] % tile + places[other] % tile
            yield {**law, "tile": tile}, _put(sources, dim, place)


def _in_memory(sources: Sources, dims: list[int]) -> Iterator[Guess]:
    """Yield laws of addresses: the input lies in memory row by row."""
    read = sources.sound & (((sources.reads - sources.reads.round()).abs() <= TOLERANCE).all(dim=1))
    if not _is_whole(sources.belongs) or 2 * int(read.sum()) < read.numel():
        return
    strides = [math.prod(sources.shape[dim + 1 :]) for dim in range(len(sources.shape))]
    steps = torch.tensor(strides, dtype=torch.float64, device=sources.belongs.device)
    right, got = sources.belongs.round() @ steps, sources.reads.round() @ steps
    for a, b in itertools.combinations(dims, 2):
        order = list(sources.shape)
        order[a], order[b] = order[b], order[a]
        index = sources.belongs.round()
        index[:, [a, b]] = index[:, [b, a]]
        flat = _flattened(index, order)
        yield {"kind": "layout", "dims": [a, b]}, _unflattened(flat, sources.shape)
    for dim in dims:
        place = sources.belongs[:, dim].round()
        known = read & (place > 0)
        if not bool(known.any()):
            continue
        stride = _mode((got - right)[known] / place[known] + strides[dim])
        if isinstance(stride, int) and stride >= 0 and stride != strides[dim]:
            flat = right + place * (stride - strides[dim])
            law = {"kind": "stride", "dim": dim, "stride": stride, "right": strides[dim]}
            yield law, _unflattened(flat, sources.shape)
    by = _mode((got - right)[read])
    if by and isinstance(by, int):
        yield {"kind": "flat", "by": by}, _unflattened(right + by, sources.shape)


def _flattened(index: Tensor, shape: list[int]) -> Tensor:
    flat = torch.zeros_like(index[:, 0])
    for dim, size in enumerate(shape):
        flat = flat * size + index[:, dim]
    return flat


def _unflattened(flat: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return the indices of flat positions; what lies outside gets a first index outside."""
    parts = []
    for size in reversed(shape[1:]):
        parts.append(flat % size)
        flat = torch.div(flat, size, rounding_mode="floor")
    return torch.stack([flat, *reversed(parts)], dim=1)


def _put(
    sources: Sources, dim: int, place: Tensor, other: int | None = None, value: Tensor | None = None
) -> Tensor:
    predicted = sources.belongs.clone()
    predicted[:, dim] = place
    if other is not None and value is not None:
        predicted[:, other] = value
    return predicted


def _mode(values: Tensor) -> int | float:
    """Return the most frequent value, to half an index; an int where it is whole."""
    halves, counts = (2 * values).round().unique(return_counts=True)
    value = float(halves[counts.argmax()].item()) / 2
    return int(value) if value == int(value) else value


def _is_whole(values: Tensor) -> bool:
    return bool(((values - values.round()).abs() <= TOLERANCE).all())


def _examples(sources: Sources, predicted: Tensor, follows: Tensor) -> list[dict[str, Any]]:
    """Return a few elements: `at` in the output, what it `reads` and what `belongs` there.

    An index is None along a dimension of which elements read several, or all.
    """
    seen = (follows & _near(sources.reads, predicted)).nonzero().reshape(-1)
    count = seen.numel()
    several = [
        summed or not _is_whole(sources.belongs[:, dim]) or not _is_whole(sources.reads[seen, dim])
        for dim, summed in enumerate(sources.summed)
    ]
    steps = range(min(EXAMPLES, count))
    spread = dict.fromkeys(int(seen[k * (count - 1) // (EXAMPLES - 1)]) for k in steps)
    return [
        {
            "at": sources.at[place].tolist(),
            "reads": _index(sources.reads[place], several),
            "belongs": _index(sources.belongs[place], several),
        }
        for place in spread
    ]


def _index(place: Tensor, several: list[bool]) -> list[int | None]:
    return [
        None if hidden else round(value)
        for value, hidden in zip(place.tolist(), several, strict=True)
    ]
