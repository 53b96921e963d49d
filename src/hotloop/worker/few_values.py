"""Few values among zeros: whose luck the errors of a sparse output are.

Behind a ReLU of negative sums 1,536 elements may hold three that are not 0. The RMSE is then the
rounding of three sums, not of 1,536: a right kernel was refused where the envelope was lucky in
them. What is exactly 0 in the golden and in every member of the envelope carries no rounding, so an
output that the usual rules refuse is looked at once more:

    all elements        within the limits of an output that has only what carries rounding
    where g is 0        within the usual limits, without any of that luck

Of at most 3 values the envelope's error is luck as well: in KernelBench 2/9 all members may round
one sum to the same float32, 100 times nearer than is usual. Its worst errors on the next seven
draws of the profile that have a value count then too, its RMSE as one over the values alone: 56 of
them must not say how far three are off together. Bounds of other inputs made of such a one
(`reseeded`) keep what is known. The values have the luck of a single one, and tiles no rule but at
zeros. TF32 and bfloat16 are thousands of times off.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from hotloop.worker.error_stats import CHUNK, TILE
from hotloop.worker.memory import ran_out, release_memory

if TYPE_CHECKING:
    from hotloop.worker.bound import Bound

FEWEST = 3
"""Values whose errors say nothing of an implementation's precision."""
LEAST = 64
"""Elements of an output in which these are few."""
MORE_DRAWS = 7
MOST_DRAWS = 64
"""Made to find as many that have a value."""


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
    bounds: tuple[Bound, ...],
    seed: int,
    bounds_of: Callable[[int], tuple[Bound, ...]],
    *,
    took_s: float,
    limit_s: float,
) -> tuple[Bound, ...]:
    """Return the bounds, those of too few values with the envelope's errors on other draws too.

    Draws without a value say nothing and are passed over. Where memory runs out the bounds stay as
    they are: the draw's own inputs and golden live beside every other one.

    Args:
        bounds: of a draw, one an output.
        seed: that the draw was made with.
        bounds_of: makes those of another seed; none where a draw is void or has no value.
        took_s: what this draw took.
        limit_s: what a draw may take to be added, and seven draws together.
    """
    wanted = {i: [bound] for i, bound in enumerate(bounds) if bound.has_too_few}
    wanted = {i: known for i, known in wanted.items() if not known[0].pooled_max}
    if not wanted or took_s > limit_s:
        return bounds
    end = time.monotonic() + MORE_DRAWS * limit_s
    try:
        for other in range(seed + 1, seed + MOST_DRAWS + 1):
            short = [known for known in wanted.values() if len(known) <= MORE_DRAWS]
            if not short or time.monotonic() > end:
                break
            found = bounds_of(other % 2**31)
            for i, known in wanted.items():
                if found and found[i].golden_max > 0:
                    known.append(found[i])
    except Exception as exc:  # noqa: BLE001  the problem's code may have wrapped it
        if not ran_out(exc):
            raise
        wanted = {}
        release_memory()
    for i, known in wanted.items():
        if len(known) > 1:
            bounds[i].pool(max(b.values_rmse for b in known), max(b.envelope_max for b in known))
    return bounds
