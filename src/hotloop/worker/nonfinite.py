"""Non-finite results: when NaN and Inf are part of what a reference means, and when they are not.

A logarithm of zero and a mask of minus infinity are results like others: a candidate must have the
same NaN and Inf at the same places, and its finite elements are gated. They void the inputs where
eager and the golden disagree about them (then they come from a dtype that overflows, not from the
function), or where hardly anything finite is left to gate. On values that the problem does not ship
they are not allowed unless its own have them: nobody promised what a square root of -1 gives.
"""

from __future__ import annotations

import torch
from torch import Tensor

from hotloop.worker.error_stats import same_nonfinite
from hotloop.worker.pieces import PIECE

MIN_FINITE_FRAC = 0.25
"""Share of an output that must be finite; a causal mask leaves half."""


def void_reason(got: Tensor, want: Tensor, *, allowed: bool) -> str | None:
    """Return why the NaN and Inf of eager and the golden void these inputs, or None.

    Args:
        got: eager's output, floating point.
        want: the golden, float64, of the same shape.
        allowed: whether there may be any.
    """
    finite = 0
    for x, y in zip(got.reshape(-1).split(PIECE), want.reshape(-1).split(PIECE), strict=True):
        both = torch.isfinite(x) & torch.isfinite(y)
        kept = int(both.sum().item())
        finite += kept
        if kept < x.numel() and not bool((both | same_nonfinite(x, y)).all().item()):
            return "is not finite in the reference's own precision, or only in float64"
    if finite == want.numel():
        return None
    if not allowed or finite < MIN_FINITE_FRAC * want.numel():
        return f"of the reference is not finite: {finite} of {want.numel()} elements are"
    return None
