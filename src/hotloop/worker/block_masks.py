"""FlexAttention's block mask: made once for all baselines of a draw, and timed.

`create_block_mask` runs as it is (dozens of small kernels) or compiled, as its documentation
advises. Both are made here, and the quicker one's time is what FlexAttention is charged for work
ahead of its calls: `prepare_ms` of a candidate is held against it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask

from hotloop.worker import baselines
from hotloop.worker.attention_file import AttentionSizes
from hotloop.worker.attention_math import Grid, over_grid

MASK_BYTES = 1 << 32
"""Largest dense mask that an uncompiled create_block_mask may build."""
Maker = Callable[[], BlockMask]
Timed = Callable[[Maker, str], tuple[BlockMask, float]]


class BlockMasks:
    """The block mask of one mask_mod; kept for the captured tensors that it was made for last."""

    def __init__(self, mask_mod: Callable[..., Any] | None, sizes: AttentionSizes, device: str):
        self._mask_mod = mask_mod
        self._sizes = sizes
        self._device = device
        self._made: tuple[Mapping[str, Tensor], BlockMask, float] | None = None

    def of(self, state: Mapping[str, Tensor], grid: Grid) -> tuple[BlockMask, float]:
        """Return the mask and the wall milliseconds of making it; captured tensors are in place.

        Args:
            state: the captured tensors. The same mapping gets the same mask.
            grid: sampled indices, all batches and heads, that tell whether the mask depends on
                those.
        """
        if self._made is None or self._made[0] is not state:
            mask, elapsed_ms = quickest(self._makers(grid), self._device)
            self._made = state, mask, elapsed_ms
        return self._made[1:]

    def _makers(self, grid: Grid) -> list[Maker]:
        s, mask_mod, device = self._sizes, self._mask_mod, self._device
        assert mask_mod is not None
        over_b, over_h = depends_on(mask_mod, grid)
        batch, heads = s.B if over_b else None, s.H if over_h else None

        def plain() -> BlockMask:
            return create_block_mask(mask_mod, batch, heads, s.S, s.Skv, device=device)

        if device != "cuda":
            return [plain]
        fast = torch.compile(create_block_mask, dynamic=False)

        def compiled() -> BlockMask:
            return fast(mask_mod, batch, heads, s.S, s.Skv, device=device)

        if (batch or 1) * (heads or 1) * s.S * s.Skv > MASK_BYTES:
            return [compiled]
        return [plain, compiled]


def depends_on(mask_mod: Callable[..., Any], grid: Grid) -> tuple[bool, bool]:
    """Return whether the mask depends on the batch, and on the head, at the grid's indices."""
    shape = tuple(len(axis) for axis in (grid.b, grid.h, grid.q, grid.kv))
    mask = over_grid(mask_mod, grid).expand(shape)
    return not bool((mask == mask[:1]).all()), not bool((mask == mask[:, :1]).all())


def quickest(
    makers: list[Maker], device: str, timed: Timed = baselines.timed_ms
) -> tuple[BlockMask, float]:
    """Return the first maker's mask, and the least time of those that make the same one.

    Args:
        makers: each makes the mask. The first one has to work; another one that fails, or makes
            other blocks, is left out.
        device: `cuda` or `cpu`.
        timed: returns what a maker makes, and its wall milliseconds.
    """
    first, *others = makers
    mask, best_ms = timed(first, device)
    for make in others:
        try:
            other, elapsed_ms = timed(make, device)
        except Exception:  # noqa: BLE001  compilers raise anything, and the first one is enough
            continue
        if same_blocks(mask, other):
            best_ms = min(best_ms, elapsed_ms)
    return mask, best_ms


def same_blocks(one: BlockMask, two: BlockMask) -> bool:
    """Whether two block masks have the same partial and the same full blocks."""
    pairs = (
        (one.kv_num_blocks, two.kv_num_blocks),
        (one.kv_indices, two.kv_indices),
        (one.full_kv_num_blocks, two.full_kv_num_blocks),
        (one.full_kv_indices, two.full_kv_indices),
    )
    return all(a is b if a is None or b is None else torch.equal(a, b) for a, b in pairs)
