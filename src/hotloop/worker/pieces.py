"""Reductions over large tensors, piece by piece: no temporary of the tensor's own size.

`isfinite` and `abs` over a float64 golden make a copy of it; of a golden of 14 GiB that is 14 GiB.
The reductions here are exact, so cutting changes no result, but for `error_carriers`, which is
compared with limits far from it.
"""

from __future__ import annotations

import torch
from torch import Tensor

PIECE = 1 << 25
"""Elements; 256 MiB of float64."""


def all_finite(tensor: Tensor) -> bool:
    """Whether a tensor of any shape and dtype holds neither NaN nor Inf."""
    return all(bool(torch.isfinite(part).all()) for part in tensor.reshape(-1).split(PIECE))


def largest_abs(tensor: Tensor) -> float:
    """Return max|x| of a real tensor of any shape; 0 where it is empty, NaN where one is in it."""
    if tensor.numel() == 0:
        return 0.0
    parts = [part.abs().max() for part in tensor.reshape(-1).split(PIECE)]
    return float(torch.stack(parts).max().item())


def end_share(tensor: Tensor) -> float:
    """Return the share of elements that are 0, the largest or the smallest; 0 of an empty tensor.

    Args:
        tensor: real, finite, any shape and dtype.
    """
    if tensor.numel() == 0:
        return 0.0
    parts = tensor.reshape(-1).split(PIECE)
    low, high = min(p.min().item() for p in parts), max(p.max().item() for p in parts)
    ends = sum(int(((p == 0) | (p == low) | (p == high)).sum()) for p in parts)
    return ends / tensor.numel()


def error_carriers(got: Tensor, want: Tensor) -> float:
    """Return how many elements carry the error, (sum e^2)^2 / sum e^4; 0 where there is none.

    It is the number of elements for equal errors, a third of it for normally distributed ones, and
    1 where a single element is off (the participation ratio: Bell and Dean, Discuss. Faraday Soc.
    50 (1970) 55).

    Args:
        got: real, any shape and dtype; elements that are not finite count as no error.
        want: of the same shape.
    """
    squares = fourths = 0.0
    pairs = zip(got.reshape(-1).split(PIECE), want.reshape(-1).split(PIECE), strict=True)
    largest = max((float(_errors(a, b).max()) for a, b in pairs if a.numel()), default=0.0)
    if largest == 0.0:
        return 0.0
    pairs = zip(got.reshape(-1).split(PIECE), want.reshape(-1).split(PIECE), strict=True)
    for a, b in pairs:
        e = (_errors(a, b) / largest).square()
        squares += float(e.sum())
        fourths += float(e.square().sum())
    return squares * squares / fourths


def _errors(got: Tensor, want: Tensor) -> Tensor:
    return (got.double() - want.double()).abs().nan_to_num(0.0, posinf=0.0)
