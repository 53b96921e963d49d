"""Few values among zeros: whose luck the errors of a sparse output are.

Behind a ReLU of negative sums 1,536 elements may hold three that are not 0. The RMSE is then the
rounding of three sums, not of 1,536: a right kernel was refused where the envelope was lucky in
them. What is exactly 0 in the golden and in every member of the envelope carries no rounding, so an
output that the usual rules refuse is looked at once more:

    all elements        within the limits of an output that has only what carries rounding
    where g is 0        within the usual limits, without any of that luck

Of at most 3 values the envelope's error is luck as well: in KernelBench 2/9 all members may round
one sum to the same float32, 100 times nearer than is usual. Its worst error on seven other draws of
the profile counts then too; the values have the luck of a single one, and tiles no rule but at
zeros. TF32 and bfloat16 are thousands of times off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from hotloop.worker.error_stats import CHUNK, TILE

if TYPE_CHECKING:
    from hotloop.worker.bound import Bound

FEWEST = 3
"""Values whose errors say nothing of an implementation's precision."""
LEAST = 64
"""Elements of an output in which these are few."""
MORE_DRAWS = 7


def carriers(golden: torch.Tensor, member: torch.Tensor) -> torch.Tensor:
    """Return how many elements of each tile are not exactly 0 in both; float64.

    Args:
        golden: any shape and dtype.
        member: of the same shape.
    """
    flat_g, flat_m = golden.reshape(-1), member.reshape(-1)
    counts = [torch.zeros(0, dtype=torch.int64, device=golden.device)]
    for start in range(0, max(flat_g.numel(), 1), CHUNK):
        g, m = flat_g[start : start + CHUNK], flat_m[start : start + CHUNK]
        carry = (g != 0) | (m != 0)
        full = carry.numel() // TILE * TILE
        counts.append(carry[:full].view(-1, TILE).sum(dim=1))
        if full < carry.numel() or not full:
            counts.append(carry[full:].sum()[None])
    return torch.cat(counts).to(torch.float64)


def is_too_few(values: float, count: int) -> bool:
    """Whether so many values among `count` elements say nothing of precision."""
    return values <= FEWEST and count >= LEAST


def with_more_draws(
    bounds: tuple[Bound, ...], seed: int, bounds_of: Callable[[int], tuple[Bound, ...]]
) -> tuple[Bound, ...]:
    """Return the bounds, those of too few values with the envelope's errors on other draws too.

    Args:
        bounds: of a draw, one an output.
        seed: that the draw was made with.
        bounds_of: makes those of another seed; none where a draw is void.
    """
    if not any(bound.has_too_few for bound in bounds):
        return bounds
    others = [bounds_of((seed + i) % 2**31) for i in range(1, MORE_DRAWS + 1)]
    for i, bound in enumerate(bounds):
        if bound.has_too_few and bound.few is not None:
            known = (bound, *(other[i] for other in others if other))
            bound.few = replace(
                bound.few,
                envelope_rmse=max(b.envelope_rmse for b in known),
                envelope_max=max(b.envelope_max for b in known),
            )
    return bounds
