"""Eager's errors: what they and the golden say about the values that a draw has.

How far off eager is in proportion, whether a few elements carry all of it, whether results are near
the end of their dtype.
"""

from __future__ import annotations

import torch

from hotloop.worker.draw import Outputs
from hotloop.worker.error_stats import error_stats, size_stats
from hotloop.worker.nonfinite import void_reason
from hotloop.worker.pieces import end_share, error_carriers, largest_abs

CARRIER_FRAC, CARRIERS = 0.125, 256
"""So many elements carry the error of `far` at least: an eighth of all (a third do where errors are
normally distributed), or so many that their root mean square is known to some 5 %."""
SATURATED_FRAC = 0.9
"""An output of `far` with more of its elements at an end of its range judges no precision, only
how many come out at the wrong end (`gross.py`)."""
FEW = 64
"""Outputs of fewer elements are not asked: a sum has one, which is both ends."""


def is_void(got: torch.Tensor, want: torch.Tensor) -> bool:
    """Whether an output of the reference says nothing: NaN or Inf that float64 does not have."""
    return want.dtype.is_floating_point and void_reason(got, want, allowed=True) is not None


def relative_errors(eager: Outputs, golden: Outputs) -> list[float]:
    """Return RMSE over RMS of each output, at least its dtype's epsilon: nobody is exact on luck.

    An output that is not floating point, or 0 everywhere, has the epsilon of float32.
    """
    errors = []
    for got, want in zip(eager, golden, strict=True):
        if not got.dtype.is_floating_point:
            errors.append(torch.finfo(torch.float32).eps)
            continue
        size = size_stats(want).rmse
        share = error_stats(got, want).rmse / size if size else 0.0
        errors.append(max(share, torch.finfo(got.dtype).eps))
    return errors


def concentrated(i: int, got: torch.Tensor, want: torch.Tensor) -> str | None:
    """Return why a few elements of output `i` would stand for all on this or another seed, or None.

    Behind a tanh or a softmax of far values nearly all results are 0 or 1 to the last bit. The few
    between, where a seed has any, carry the whole error of eager, and which of them is off by how
    much is luck: honest kernels would be refused on some seeds.
    """
    if not want.dtype.is_floating_point or want.numel() < FEW:
        return None
    if end_share(want) > SATURATED_FRAC:
        return f"nearly all elements of output {i} are 0, its largest or its smallest value"
    carriers = error_carriers(got, want)
    if 0 < carriers < min(CARRIER_FRAC * want.numel(), CARRIERS):
        return f"{carriers:.0f} of {want.numel()} elements of output {i} carry the error"
    return None


def near_overflow(eager: Outputs, below: float) -> str | None:
    """Return which output reaches that share of the largest number of its dtype, or None."""
    for i, output in enumerate(eager):
        if output.dtype.is_floating_point and output.numel():
            largest = below * torch.finfo(output.dtype).max
            if largest_abs(output) >= largest:
                return f"output {i} of the reference is over {largest:.3g}, near its dtype's end"
    return None
