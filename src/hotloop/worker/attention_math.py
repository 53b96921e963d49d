"""Attention math: exact, unfused and tiled attention with a score_mod and a mask_mod, in blocks.

All three walk over blocks of (batch, head, query rows), so no S x Skv matrix is ever whole. The
modifications are evaluated as FlexAttention does it: four nested vmaps over scalar indices, scores
scaled before `score_mod`, masked scores -inf, rows without any key 0.

exact     float64 throughout: the golden
unfused   float32 scores and softmax, weights rounded to the input dtype before the product with v:
          what uncompiled FlexAttention computes
tiled     online softmax over key tiles with float32 accumulators, the same rounding of the
          weights, TF32 products where the policy allows them: what a simple fused kernel computes
          (online softmax: arXiv 1805.02867)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

from hotloop.worker import sequential

BLOCK_ELEMENTS = 1 << 25
"""Scores a block; 256 MiB in float64, and about eight such tensors live at once."""
MAX_BLOCK_ELEMENTS = 1 << 28
"""Scores a block on a GPU with memory to spare: each block costs milliseconds of host time."""
LIVE_BYTES = 16 * 8
"""Memory taken a score: float64, and twice the eight tensors for the allocator's slack."""
KEY_TILE = 64
WIDE_KEY_TILE = 160
"""A second width for the envelope: other partial sums, and a last tile that is not full."""


@dataclass(frozen=True, slots=True)
class Mods:
    """What is done to the scores; None where the problem does not do it."""

    score_mod: Callable[..., Any] | None
    mask_mod: Callable[..., Any] | None
    scale: float
    sigmoid: bool = False
    """Weights are sigmoid(score), not normalised over the row."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The indices of a block of scores: batch, head, query, key; one vector each."""

    b: Tensor
    h: Tensor
    q: Tensor
    kv: Tensor

    @classmethod
    def ranges(cls, device: torch.device, *bounds: tuple[int, int]) -> Grid:
        """Build from four half-open ranges."""
        return cls(*(torch.arange(*pair, device=device) for pair in bounds))


def over_grid(mod: Callable[..., Any], grid: Grid, scores: Tensor | None = None) -> Tensor:
    """Evaluate a mask_mod, or with `scores` (b, h, q, kv) a score_mod, on a grid of indices."""
    prefix: tuple[int, ...] = () if scores is None else (0,)
    function = mod
    for axis in (3, 2, 1, 0):
        dims = tuple(0 if i == axis else None for i in range(4))
        function = torch.vmap(function, in_dims=(*prefix, *dims))
    leading = () if scores is None else (scores,)
    with TransformGetItemToIndex():
        return function(*leading, grid.b, grid.h, grid.q, grid.kv)


def modified(scores: Tensor, grid: Grid, mods: Mods) -> Tensor:
    """Scale scores (b, h, q, kv), apply score_mod, and set masked ones to -inf."""
    scores = scores * mods.scale
    if mods.score_mod is not None:
        scores = over_grid(mods.score_mod, grid, scores).to(scores.dtype)
    if mods.mask_mod is not None:
        scores = scores.masked_fill(~over_grid(mods.mask_mod, grid), float("-inf"))
    return scores


def exact(q: Tensor, k: Tensor, v: Tensor, mods: Mods) -> Tensor:
    """Return attention in float64; q (B, H, S, D), k and v (B, Hkv, Skv, D), any dtype.

    Call it with float64 as the default dtype and float64 captured tensors.
    """

    def block(qb: Tensor, kb: Tensor, vb: Tensor, grid: Grid) -> Tensor:
        scores = modified(qb.double() @ kb.double().mT, grid, mods)
        weights, norm = _weights(scores, mods)
        return (weights @ vb.double()) / norm

    return _in_blocks(block, q, k, v, torch.float64)


def unfused(q: Tensor, k: Tensor, v: Tensor, mods: Mods) -> Tensor:
    """Return attention as separate operations, scores and softmax in float32."""
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32

    def block(qb: Tensor, kb: Tensor, vb: Tensor, grid: Grid) -> Tensor:
        scores = modified(qb.to(wide) @ kb.to(wide).mT, grid, mods)
        weights, norm = _weights(scores, mods)
        return (weights / norm).to(q.dtype) @ vb

    return _in_blocks(block, q, k, v, q.dtype)


def tiled(q: Tensor, k: Tensor, v: Tensor, mods: Mods, *, key_tile: int = KEY_TILE) -> Tensor:
    """Return attention by online softmax over tiles of `key_tile` keys."""
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32

    def block(qb: Tensor, kb: Tensor, vb: Tensor, grid: Grid) -> Tensor:
        top = torch.full((*qb.shape[:-1], 1), float("-inf"), dtype=wide, device=q.device)
        norm = torch.zeros_like(top)
        out = torch.zeros((*qb.shape[:-1], v.shape[-1]), dtype=wide, device=q.device)
        qw = qb.to(wide)
        for start in range(0, kb.shape[2], key_tile):
            tile = slice(start, start + key_tile)
            part = Grid(grid.b, grid.h, grid.q, grid.kv[tile])
            scores = modified(_product(qw, kb[:, :, tile].to(wide).mT), part, mods)
            if mods.sigmoid:
                weights = scores.sigmoid()
            else:
                higher = torch.maximum(top, scores.amax(dim=-1, keepdim=True))
                base = _finite_or_zero(higher)
                rescale = (top - base).exp()
                weights = (scores - base).exp()
                norm = norm * rescale + weights.sum(dim=-1, keepdim=True)
                out = out * rescale
                top = higher
            out = out + _product(weights.to(q.dtype).to(wide), vb[:, :, tile].to(wide))
        return out if mods.sigmoid else out / torch.where(norm == 0, 1, norm)

    return _in_blocks(block, q, k, v, q.dtype)


def _product(a: Tensor, b: Tensor) -> Tensor:
    a, b = sequential.operands(a, b)
    return a @ b


class Visible(NamedTuple):
    """What a mask leaves, as shares from 0 to 1."""

    score_frac: float
    """Of the (batch, head, query, key) places."""
    key_frac: float
    """Of the (batch, kv head, key) places: those that some query sees."""


def visible(mods: Mods, kv_heads: int, shape: tuple[int, int, int, int], device: str) -> Visible:
    """Return what `mask_mod` keeps of (B, H, S, Skv) scores; everything without one."""
    if mods.mask_mod is None:
        return Visible(1.0, 1.0)
    batch, heads, rows, keys = shape
    at = torch.device(device)
    seen = torch.zeros((batch, heads, keys), dtype=torch.bool, device=at)
    kept = 0.0
    for bs, hs, qs in _blocks(batch, heads, rows, keys, _block_elements(at)):
        grid = Grid.ranges(
            at, (bs.start, bs.stop), (hs.start, hs.stop), (qs.start, qs.stop), (0, keys)
        )
        mask = over_grid(mods.mask_mod, grid).expand(
            bs.stop - bs.start, hs.stop - hs.start, qs.stop - qs.start, keys
        )
        kept += float(mask.sum(dtype=torch.int64))
        seen[bs, hs] |= mask.any(dim=2)
    shared = seen.view(batch, kv_heads, heads // kv_heads, keys).any(dim=2)
    seen_keys = float(shared.sum(dtype=torch.int64))
    return Visible(kept / math.prod(shape), seen_keys / shared.numel())


def row_levels(
    mods: Mods, shape: tuple[int, int, int, int], at: Sequence[int], device: torch.device
) -> tuple[Tensor, Tensor]:
    """Return each row's log(sum(exp)) where scores are 0 before modification, and those of keys.

    `shape` is B, H, S, Skv and `at` names the keys. The results are (B, H, S) and (B, H, S, keys),
    float64, -inf where nothing is seen. Call it as `exact` is called.
    """
    batch, heads, rows, keys = shape
    level = torch.empty((batch, heads, rows), dtype=torch.float64, device=device)
    there = level.new_empty((batch, heads, rows, len(at)))
    for bs, hs, qs in _blocks(batch, heads, rows, keys, _block_elements(device)):
        grid = Grid.ranges(
            device, (bs.start, bs.stop), (hs.start, hs.stop), (qs.start, qs.stop), (0, keys)
        )
        zero = level.new_zeros([len(axis) for axis in (grid.b, grid.h, grid.q, grid.kv)])
        scores = modified(zero, grid, mods)
        level[bs, hs, qs] = scores.logsumexp(dim=-1)
        there[bs, hs, qs] = scores[..., list(at)]
    return level, there


def _weights(scores: Tensor, mods: Mods) -> tuple[Tensor, Tensor | float]:
    if mods.sigmoid:
        return scores.sigmoid(), 1.0
    weights = (scores - _finite_or_zero(scores.amax(dim=-1, keepdim=True))).exp()
    norm = weights.sum(dim=-1, keepdim=True)
    return weights, torch.where(norm == 0, 1, norm)


def _finite_or_zero(top: Tensor) -> Tensor:
    # a row without any key has -inf as its maximum; -inf - (-inf) would be NaN
    return torch.where(torch.isneginf(top), 0, top)


def _in_blocks(
    block: Callable[..., Tensor], q: Tensor, k: Tensor, v: Tensor, dtype: torch.dtype
) -> Tensor:
    batch, heads, rows, _ = q.shape
    group, keys = heads // k.shape[1], k.shape[2]
    out = torch.empty((batch, heads, rows, v.shape[-1]), dtype=dtype, device=q.device)
    for bs, hs, qs in _blocks(batch, heads, rows, keys, _block_elements(q.device)):
        shared = torch.arange(hs.start, hs.stop, device=q.device) // group
        grid = Grid.ranges(
            q.device, (bs.start, bs.stop), (hs.start, hs.stop), (qs.start, qs.stop), (0, keys)
        )
        out[bs, hs, qs] = block(q[bs, hs, qs], k[bs, shared], v[bs, shared], grid)
    return out


def _block_elements(device: torch.device) -> int:
    if device.type != "cuda":
        return BLOCK_ELEMENTS
    free_bytes, _ = torch.cuda.mem_get_info(device)
    return max(BLOCK_ELEMENTS, min(MAX_BLOCK_ELEMENTS, free_bytes // LIVE_BYTES))


def _blocks(
    batch: int, heads: int, rows: int, keys: int, elements: int
) -> Iterator[tuple[slice, slice, slice]]:
    row_step = min(rows, max(1, elements // keys))
    head_step = min(heads, max(1, elements // (rows * keys)))
    batch_step = min(batch, max(1, elements // (heads * rows * keys)))
    for b in range(0, batch, batch_step):
        for h in range(0, heads, head_step):
            for r in range(0, rows, row_step):
                yield (
                    slice(b, min(batch, b + batch_step)),
                    slice(h, min(heads, h + head_step)),
                    slice(r, min(rows, r + row_step)),
                )
