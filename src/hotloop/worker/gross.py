"""Gross errors: elements that are off by half of what the output's own elements spread over.

Behind a sigmoid, a clamp or a softmax of far values nearly all results sit at an end of the range.
Which of the few between is off by how much is luck, so no rule on the size of errors fits honest
kernels there. How many elements come out at the wrong end is not: in a kernel that loses the values
on the way (a NaN of overflow that a maximum drops, operands clamped to float16's range) it is a
share of all, 16 and 51 % in two kernels of KernelBench; where a product rounds its operands to 11
bits, up to 0.02 % of them (decision 016).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from hotloop.worker.pieces import PIECE

GROSS_FRAC = 0.5
"""An error over this many standard deviations of the golden is gross."""
ENVELOPE_FACTOR = 4
"""So many times as many as the worst of the envelope may be gross, as in the rule for the tail."""
SLACK = 256
"""One element, and one more in each so many, may be gross where the envelope has none."""


def spread(golden: Tensor) -> float:
    """Return the standard deviation of the finite elements; 0 where there are none.

    Args:
        golden: real, any shape and dtype.
    """
    count, mean, squares = 0, 0.0, 0.0  # Chan, Golub and LeVeque, Am. Stat. 37 (1983) 242
    for part in golden.reshape(-1).split(PIECE):
        values = part.double()
        values = values[torch.isfinite(values)]
        if not values.numel():
            continue
        more, middle = values.numel(), float(values.mean())
        apart = middle - mean
        squares += float((values - middle).square().sum())
        squares += apart * apart * count * more / (count + more)
        mean += apart * more / (count + more)
        count += more
    return math.sqrt(squares / count) if count else 0.0


def gross_errors(made: Tensor, golden: Tensor, scale: float) -> int:
    """Return how many elements are off by over half of `scale`; a NaN is one of them.

    Where both are the same infinity, or both NaN, there is no error. Without a scale (0: all of the
    golden is one number) nothing is gross.

    Args:
        made: real, of the golden's shape.
        golden: real, any shape and dtype.
        scale: the golden's `spread`.
    """
    if scale == 0.0:
        return 0
    found = 0
    pairs = zip(made.reshape(-1).split(PIECE), golden.reshape(-1).split(PIECE), strict=True)
    for a, b in pairs:
        got, want = a.double(), b.double()
        near = (got - want).abs() <= GROSS_FRAC * scale
        same = (got == want) | (got.isnan() & want.isnan())
        found += int((~(near | same)).sum())
    return found


def most_gross(envelope: int, count: int) -> int:
    """Return how many elements of a candidate may be gross.

    Args:
        envelope: of the member of the envelope that has the most.
        count: elements of the output.
    """
    return ENVELOPE_FACTOR * envelope + 1 + count // SLACK
