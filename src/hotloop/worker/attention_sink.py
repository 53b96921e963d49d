"""The value profile `sink`: one key's score far above all others, which together still count.

Trained models have such a key, and a kernel that skips blocks far below a row's maximum is right
wherever no score stands out. Here the sink outweighs the rest of its row by the same factor in
every row that sees it, whatever a mask leaves and a bias adds: what the others weigh is found from
the modifications alone, on scores of 0.

The sinks of successive heads are an early, the last and the first key, so that blocks beside one
are skipped by kernels that go through the keys in either order.
"""

from __future__ import annotations

import torch
from torch import Tensor

from hotloop.worker.attention_math import Mods, row_levels

BEYOND = 3.5
"""The sink's score above the logarithm of what all keys of the row weigh: all others together are
3 % of the row, ten times what 16 bits round."""
MOST = 24.0
"""The largest score that q and k give a sink. A bias that takes more away from it stays: with more,
scores would round at the size of what they cancel."""
QUIET = 0.25
"""Deviation of the others' scores, so that whole blocks are 8 below the sink from 170 keys on."""
QUERY = 4.0
"""What the sink's key is divided by, so that neither side is rounded at a size of its own."""


def write_sink(q: Tensor, k: Tensor, mods: Mods) -> None:
    """Make q (B, H, S, D), of N(0, 1), quiet, and raise one key of each head of k (B, Hkv, Skv, D).

    Call it with float64 as the default dtype and float64 captured tensors.
    """
    (batch, heads, rows, _), (kv_heads, keys) = q.shape, k.shape[1:3]
    candidates = torch.tensor((keys // 3, keys - 1, 0), device=k.device)
    level, there = row_levels(mods, (batch, heads, rows, keys), candidates.tolist(), k.device)
    wanted = level[..., None] + BEYOND - there  # (B, H, S, candidates)
    chosen = _chosen((wanted <= MOST).unflatten(1, (kv_heads, -1)))
    of_queries = chosen.repeat_interleave(heads // kv_heads, dim=1)[..., None, None]
    score = wanted.gather(-1, of_queries.expand(-1, -1, rows, 1))[..., 0]
    q.mul_(QUIET)
    q[..., -1] = (torch.where(score.isfinite(), score.clamp(max=MOST), 0) / QUERY).to(q.dtype)
    k[..., -1] = 0
    b, h = (torch.arange(n, device=k.device) for n in (batch, kv_heads))
    k[b[:, None], h, candidates[chosen], -1] = QUERY / (mods.scale or 1.0)


def _chosen(is_reached: Tensor) -> Tensor:
    """Return each head's candidate (B, Hkv), given which reach a row: (B, Hkv, group, S, 3).

    They take turns from the last head, often the one with the least bias; a candidate that reaches
    under half as many rows as another (the last key under a causal mask) is passed over.
    """
    reach = is_reached.double().mean(dim=(2, 3))
    b, h = (torch.arange(n, device=reach.device) for n in reach.shape[:2])
    turn = (b[:, None] + h.flip(0)) % reach.shape[-1]
    is_enough = 2 * reach.gather(-1, turn[..., None])[..., 0] >= reach.amax(dim=-1)
    return torch.where(is_enough, turn, reach.argmax(dim=-1))
