"""FlexAttention over a paged cache, as PyTorch's own `PagedAttention` does it, without a copy.

PyTorch keeps a cache as (1, heads, tokens, D), where the pages of one head lie side by side; here
the heads lie inside each page. Seen as (1, 1, P * Hkv * page_size, D), every head of every page is
a page of one long row of tokens. Each pair of a batch and a kv head is then a batch with a table of
its own, and the query heads of a group are the heads of that batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.experimental._paged_attention import PagedAttention
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, noop_mask

from hotloop.worker.attention_file import AttentionSizes
from hotloop.worker.attention_math import Grid, Mods
from hotloop.worker.block_masks import Maker, depends_on, quickest

Mod = Callable[..., Any]
QUERY_BLOCK = 128
"""Queries of a block of the mask: FlexAttention's default."""


class PagedFlex:
    """One problem's modifications on one page table (B, Skv / page_size).

    Captured tensors are read when the functions run, from where the modifications read them.
    """

    def __init__(self, mods: Mods, sizes: AttentionSizes, table: Tensor) -> None:
        assert sizes.page_size is not None
        self._mods = mods
        self._sizes = sizes
        self._group = sizes.H // sizes.Hkv
        self._device = table.device.type
        batches, columns = sizes.B * sizes.Hkv, table.shape[1]
        self._cache = PagedAttention(
            sizes.kv_shape[0] * sizes.Hkv, sizes.page_size, batches, device=self._device
        )
        heads = torch.arange(sizes.Hkv, device=table.device)[None, :, None]
        flat = (table[:, None].long() * sizes.Hkv + heads).view(batches, columns)
        self._cache.page_table[:, :columns] = flat
        order = torch.arange(columns, device=table.device).expand(batches, columns)
        self._cache.physical_to_logical.scatter_(1, flat, order)
        score_mod = _score_of_group(mods.score_mod, sizes.Hkv, self._group)
        self.score_mod = score_mod and self._cache.get_score_mod(score_mod)
        """score_mod of physical keys, -inf at pages of others; None where there is none."""

    def block_mask(self, grid: Grid) -> tuple[BlockMask, float]:
        """Return the mask of physical pages, and the wall milliseconds of making it.

        Args:
            grid: sampled indices, all batches and heads, that tell whether the mask depends on the
                head.
        """
        s, mask_mod = self._sizes, self._mods.mask_mod
        per_head = mask_mod is not None and depends_on(mask_mod, grid)[1]
        heads = self._group if per_head else None
        own = _mask_of_group(mask_mod, s.Hkv, self._group)

        def maker(create: Any) -> Maker:
            def make() -> BlockMask:
                logical = create(
                    own,
                    s.B * s.Hkv,
                    heads,
                    s.S,
                    s.Skv,
                    device=self._device,
                    BLOCK_SIZE=(QUERY_BLOCK, s.page_size),
                )
                return self._cache.convert_logical_block_mask(logical)

            return make

        makers = [maker(create_block_mask)]
        if self._device == "cuda":
            makers.append(maker(torch.compile(create_block_mask, dynamic=False)))
        return quickest(makers, self._device)

    def view_query(self, q: Tensor) -> Tensor:
        """Return q (B, H, S, D) as (B * Hkv, H / Hkv, S, D); the output has that shape too."""
        return q.view(-1, self._group, *q.shape[2:])

    def view_pages(self, pages: Tensor) -> Tensor:
        """Return pages (P, Hkv, page_size, D) as (1, 1, P * Hkv * page_size, D)."""
        return pages.view(1, 1, -1, pages.shape[-1])


def _score_of_group(score_mod: Mod | None, heads: int, group: int) -> Mod | None:
    """Return score_mod with the batch and head of a group's view; None where there is none."""
    if score_mod is None:
        return None
    own = score_mod

    # plain functions, no methods: torch counts their arguments
    def mod(score: Tensor, b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Any:
        return own(score, b // heads, b % heads * group + h, q_idx, kv_idx)

    return mod


def _mask_of_group(mask_mod: Mod | None, heads: int, group: int) -> Mod:
    """Return mask_mod with the batch and head of a group's view; without one, the mask of all."""
    if mask_mod is None:
        return noop_mask
    own = mask_mod

    def mod(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Any:
        return own(b // heads, b % heads * group + h, q_idx, kv_idx)

    return mod
