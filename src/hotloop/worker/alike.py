"""Inputs alike: those of one shape hold nearly the same numbers, in some rows up to the last bits.

Differences, distances and losses of them are small there. So what is added lest they vanish shows
(the 1e-6 within `pairwise_distance` is lost in the rounding of any other distance), and so does
what cancels: the mean of a^2 - 2ab + b^2 for that of (a - b)^2.

No two numbers are equal. Of equal ones both branches of a reference round alike, and their errors
cancel in each of its implementations, which is no measure for a kernel that takes the branches in
different orders. And what is 1, or 0, in float64 need not be in float32: x / x.

Not covered: parts of one input that forward takes apart, inputs that share memory.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence, Set
from typing import Any

import torch
from torch import Tensor

from hotloop.worker.random_sources import FREE

NEARBY = 2.0**-9
"""By what share of their size numbers differ, times 1 to 2: distances of 32,768 of them stay near
1, which is where margins of losses lie. Signs stay."""
CLOSE = 2.0**-21
"""The same where two are all but equal: half of the 1e-6 that distances add, and 4 to 8 units in
the last place of float32, over what a quotient is off."""
UNITS = 4.0
"""Numbers of fewer bits differ by so many units in the last place, at least."""

SELECT = frozenset(
    {
        "argmax", "argmin", "argsort", "bucketize", "histc", "kthvalue", "median", "mode",
        "nanmedian", "searchsorted", "sort", "topk", "unique_consecutive", "_unique2",
    }
)  # fmt: skip
"""What picks elements by comparing numbers. Differences of numbers that are close are a few units
in the last place, so that many are equal, and which of these is picked is left open."""
COMPARE = frozenset({"cummax", "cummin", "max", "min"})
PICK = frozenset({"gather", "index", "index_select", "scatter", "take"})
"""Together they select as well: by the places of extrema."""


def leaves_open(names: Set[str]) -> bool:
    """Whether operations, by name, pick elements by what may be equal among inputs alike."""
    return bool(names & SELECT) or (bool(names & COMPARE) and bool(names & PICK))


def places(values: Sequence[Any], laws: Sequence[str | None]) -> tuple[tuple[int, ...], ...]:
    """Return the places of free inputs that share shape and dtype, by group, two or more in each.

    Args:
        values: the arguments of forward.
        laws: their laws, as `inputs.draw_inputs` returns them.
    """
    memory = Counter(_memory(value) for value in values if isinstance(value, Tensor))
    groups: dict[tuple[torch.Size, torch.dtype], list[int]] = {}
    for i, (value, law) in enumerate(zip(values, laws, strict=True)):
        if law in FREE and memory[_memory(value)] == 1:
            groups.setdefault((value.shape, value.dtype), []).append(i)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def bring_near(
    values: Sequence[Any], groups: Sequence[Sequence[int]], gen: torch.Generator
) -> None:
    """Overwrite all but the first input of each group with numbers near that one's, in place.

    One pair is close in every second row (of the first dimension), another in every second of the
    others, and so on. They take turns by the seed, and have different shares: what a distance gains
    by an epsilon, another one loses where their difference is the result.
    """
    for group in groups:
        first, *others = (values[i] for i in group)
        for other in others:
            _bring(other, first, NEARBY, gen)
        pairs = list(itertools.combinations((first, *others), 2))
        order = torch.randperm(len(pairs), generator=gen, device=gen.device)
        for k, pair in enumerate(order.tolist()):
            one, other = (t if t.dim() else t[None] for t in pairs[pair])
            if 2**k > one.shape[0]:
                break  # of many inputs not each pair has a row
            rows = slice(2**k - 1, None, 2 ** (k + 1))
            _bring(other[rows], one[rows], CLOSE, gen)


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _bring(target: Tensor, origin: Tensor, share: float, gen: torch.Generator) -> None:
    """Write the origin's numbers, each moved by 1 to 2 times `share` of its size, either way."""
    share = max(share, UNITS * torch.finfo(target.dtype).eps)
    moves = torch.empty_like(target).uniform_(-1, 1, generator=gen)
    moves.add_(moves.sign())
    target.copy_(origin).mul_(moves.mul_(share).add_(1))
