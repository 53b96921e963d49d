"""Parts of a tensor with values far apart: what the value profile `negative` multiplies them by.

What a row's result depends on is that row. A kernel that takes float32 to float16 with one power of
two for a whole batch, or for a tile of rows, makes it depend on its neighbours: the small ones lose
their bits, though every error is small beside the largest value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import torch
from torch import Tensor

Factors = tuple[tuple[float, ...], ...]
"""One group a part, whose slices the factors of the group share out."""
FACTORS: tuple[Factors, ...] = (
    ((2.0**-24,), (1.0, 0.0, -6.0), (16.0,), (-16.0,)),
    ((2.0**-24,), (1.0, -6.0), (16.0,), (-16.0,)),
    ((2.0**-10,), (1.0, 0.0, -6.0), (16.0,), (-16.0,)),
    ((2.0**-10,), (1.0, -6.0), (16.0,), (-16.0,)),
    ((1.0,), (16.0,), (-16.0,)),
    ((1.0,), (16.0,)),
    ((1.0,),),
)
"""Factors of the parts that are tried, the first that the reference bears are taken.

16 goes beyond numbers that stand for infinity, such as 10, to either side; beside 2**-10 a padding
or an epsilon of 0.001 is not small. 2**-24 is float16's last bit: scaled by their neighbours of 16,
such values are lost there, and ordinary ones in float32, bfloat16 or TF32. Rows of 0 have no norm
to divide by. -6 leads to 6..12: a softplus that ends at 10 instead of 20 is 2**-14 off there, and
right further up. `positive_mean` has one range: sums over any dimension, and a variance in one
pass, need a mean that is large beside the deviation."""
NORMAL = 16.0
"""The smallest factor but 0 is at least this many times a dtype's smallest normal number."""
ROOM = 8
"""Slices of a part, on average, from which the borders are moved off the even ones."""
SIDE = (0.65, 1.3)
"""Of the parts of `far` on one side of 0, times 2**17: all beyond 65504, of the mean square of the
rest."""
COLUMN, EVERY = 3, 8
"""The first column that is made 0 where some are, and from one to the next."""


class Along(Enum):
    """What the parts of `far` are parts of."""

    ROWS = "rows"
    """The first dimension that has several elements, but for the last one."""
    COLUMNS = "columns"
    """The last dimension."""
    WHOLE = "whole"
    """There is one part, the whole tensor."""


@dataclass(frozen=True, slots=True)
class Sides:
    """Which parts of `far` have one sign."""

    below: bool = False
    """Whether the last of four parts is negative, or the only one."""
    above: bool = False
    """Whether the first of four parts is positive, or the only one where it is not negative."""
    along: Along = Along.ROWS


def holds(dtype: torch.dtype, factors: Factors) -> bool:
    """Whether values times any of the factors keep their bits; integers have none to lose."""
    if not dtype.is_floating_point:
        return True
    smallest = min(abs(f) for group in factors for f in group if f)
    return smallest >= NORMAL * torch.finfo(dtype).tiny


def parts(tensor: Tensor, factors: Factors) -> Iterator[tuple[Tensor, float]]:
    """Yield parts of the first dimension that has several elements, with one factor each.

    Whole slices, so that a reduction along any later dimension sees one factor alone, and so does a
    tile of the gate. Of a single row all have the factor 1: the largest would hide the others.

    Args:
        tensor: any shape; the last dimension is never cut.
        factors: a group for each part; of a part with fewer slices the first of its group.
    """
    dim = cut(tensor)
    if dim is None:
        yield tensor, 1.0
        return
    for start, end, factor in pieces(tensor.shape[dim], factors):
        yield tensor.narrow(dim, start, end - start), factor


def pieces(size: int, factors: Factors) -> Iterator[tuple[int, int, float]]:
    """Yield where each factor begins and ends among `size` slices, with that factor.

    Args:
        size: slices of the dimension that is cut.
        factors: as in `parts`.
    """
    ends = borders(size, len(factors))
    for group, start, end in zip(factors, ends, ends[1:], strict=False):
        shares = group[: end - start]
        inner = borders(end - start, len(shares)) if shares else [0]
        for factor, first, last in zip(shares, inner, inner[1:], strict=False):
            yield start + first, start + last, factor


def sided(tensor: Tensor, sides: Sides) -> Iterator[tuple[Tensor, float]]:
    """Yield the parts of a tensor that have one sign, with that sign; none where it has no parts.

    Args:
        tensor: any shape.
        sides: which parts.
    """
    if sides.along is Along.WHOLE:
        yield tensor, -1.0 if sides.below else 1.0
        return
    dim = cut(tensor) if sides.along is Along.ROWS else tensor.dim() - 1
    if dim is None or dim < 0 or tensor.shape[dim] < 2:
        return
    ends = borders(tensor.shape[dim], min(4, tensor.shape[dim]))
    if sides.below:
        yield tensor.narrow(dim, ends[-2], ends[-1] - ends[-2]), -1.0
    if sides.above:
        yield tensor.narrow(dim, 0, ends[1]), 1.0


def columns(tensor: Tensor) -> Tensor:
    """Return the columns that are made 0, one of eight; of a number none."""
    return tensor[..., COLUMN::EVERY] if tensor.dim() else tensor.new_empty(0)


def varied(tensor: Tensor) -> Tensor:
    """Return the part of a tensor whose rows are not constant: the last three of four."""
    dim = cut(tensor)
    if dim is None:
        return tensor
    start = borders(tensor.shape[dim], 4)[1]
    return tensor.narrow(dim, start, tensor.shape[dim] - start)


def row_values(tensor: Tensor) -> Tensor:
    """Return room for one value a row, which broadcasts against the tensor."""
    shape = (*tensor.shape[:-1], 1) if tensor.dim() else ()
    return torch.empty(shape, dtype=tensor.dtype, device=tensor.device)


def cut(tensor: Tensor) -> int | None:
    """Return the dimension that is cut, the first that has several elements; never the last."""
    return next((d for d, size in enumerate(tensor.shape[:-1]) if size > 1), None)


def borders(size: int, count: int) -> list[int]:
    """Return where `count` parts of `size` slices begin and end, from 0 to `size`.

    Where there is room the inner ones are odd and a sixth of a part late, so that a kernel's tile
    of a power of two lies across them: what the rows of one tile share shows there.
    """
    even = [i * size // count for i in range(count + 1)]
    if size < ROOM * count:
        return even
    return [0, *((end + size // (6 * count)) | 1 for end in even[1:-1]), size]
