"""Inputs alike: those of one shape hold nearly the same numbers, two of them in part the same.

Differences, distances and losses of them are small or 0 there. So what is added lest they vanish
shows (the 1e-6 within `pairwise_distance` is lost in the rounding of any other distance), and so
does what cancels: |a|^2 - 2ab + |b|^2 for |a - b|^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from hotloop.worker.random_sources import FREE

NEARBY = 2.0**-9
"""By what share of their size numbers differ, times N(0, 1): distances of 32,768 of them stay near
1, which is where margins of losses lie. 0 stays 0, and signs stay."""


def places(values: Sequence[Any], laws: Sequence[str | None]) -> tuple[tuple[int, ...], ...]:
    """Return the places of free inputs that share shape and dtype, by group, two or more in each.

    Args:
        values: the arguments of forward.
        laws: their laws, as `inputs.draw_inputs` returns them.
    """
    groups: dict[tuple[torch.Size, torch.dtype], list[int]] = {}
    for i, (value, law) in enumerate(zip(values, laws, strict=True)):
        if law in FREE and isinstance(value, Tensor) and value.is_floating_point():
            groups.setdefault((value.shape, value.dtype), []).append(i)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def bring_near(
    values: Sequence[Any], groups: Sequence[Sequence[int]], gen: torch.Generator
) -> None:
    """Overwrite all but the first input of each group with numbers near that one's, in place.

    The second equals the first in every second row (of the first dimension). No other does in
    whole rows: what one distance gains by an epsilon, the other would lose in their difference.
    """
    for first, *others in groups:
        for place in others:
            target = values[place].copy_(values[first])
            part = target[::2] if place == others[0] and target.dim() else target
            part.mul_(torch.empty_like(part).normal_(generator=gen).mul_(NEARBY).add_(1))
