"""Index digits: how values of an input say where they lie, and how outputs are read back.

A value is 1 + digit / R of the index along some dimensions, one digit a call. With the outputs for
all-lowest and all-highest digits, an output becomes a digit: the one of the element that it reads,
or the mean of those that it sums.

    R   8 where 16-bit values are involved, else 256: the codes are exact in such formats, and
        sums of them are exact enough
        2 where the reference is not linear in the input: only the two end points are needed

Rounding blurs digits; where they would be uncertain, they are not to be used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

CLEAR = 0.25
"""A digit nearer than this to a whole number is that number."""
RADIX_WIDE, RADIX_SHORT, RADIX_BENT = 256, 8, 2
ROUNDINGS_WIDE, ROUNDINGS_SHORT = 64, 2
"""Rounding errors of the output's dtype that a legitimate value may be off by: sums in float32 are
rounded again and again, those of 16-bit values once, at their end."""
Dims = tuple[int, ...]


@dataclass(slots=True)
class Scale:
    """The reference's outputs for all-lowest and all-highest digits, at the probed positions."""

    radix: int
    low: Tensor
    high: Tensor
    blur: Tensor
    """What rounding makes of a digit."""

    def digits(self, values: Tensor) -> Tensor:
        """Return the digit that each output shows, whole where it is nearly so."""
        digit = (values - self.low) / (self.high - self.low) * (self.radix - 1)
        return torch.where((digit - digit.round()).abs() <= CLEAR, digit.round(), digit)

    @property
    def usable(self) -> Tensor:
        """Whether a digit can be read at each position."""
        return torch.isfinite(self.blur) & (self.blur < CLEAR)


def encode(target: Tensor, dims: Dims, weight: int, radix: int) -> None:
    """Write into a tensor one digit, that of `weight`, of its elements' indices along `dims`."""
    view = [n if d in dims else 1 for d, n in enumerate(target.shape)]
    places = torch.arange(size_along(target, dims), device=target.device).view(view)
    digit = places // weight % radix
    target.copy_((1 + digit.to(torch.float64) / radix).expand_as(target))


def size_along(target: Tensor, dims: Dims) -> int:
    """Return how many indices there are along some dimensions together."""
    return math.prod(target.shape[dim] for dim in dims)


def single_dims(dims: Dims, indices: Tensor) -> Dims:
    """Return the dimensions of which each element of the output seems to read one index.

    A sum over several shows their mean; where that is whole, it is the same for all elements.
    """
    whole = (indices == indices.round()).all(dim=0) & (indices != indices[:1]).any(dim=0)
    return tuple(dim for dim in dims if bool(whole[dim]))


def digits_of(size: int, radix: int) -> int:
    """Return how many digits the indices below `size` have."""
    count = 1
    while radix**count < size:
        count += 1
    return count


def split(index: Tensor, target: Tensor, dims: Dims) -> dict[int, Tensor]:
    """Take an index along several dimensions apart."""
    parts: dict[int, Tensor] = {}
    for dim in reversed(dims[1:]):
        parts[dim] = index % target.shape[dim]
        index = torch.div(index, target.shape[dim], rounding_mode="floor")
    return {**parts, dims[0]: index}
