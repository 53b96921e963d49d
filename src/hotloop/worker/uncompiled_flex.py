"""Uncompiled FlexAttention: torch's own unfused path, which materialises the scores.

It is the `eager` of attention problems. The mask is folded into the score, which needs no block
mask; whether scores stay in float32 is asked of the installed torch, not assumed.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import flex_attention

from hotloop.worker.attention_file import AttentionSizes
from hotloop.worker.attention_math import Mods
from hotloop.worker.module_runner import quiet

FLEX_COPIES = 8
"""S x Skv float32 tensors that uncompiled FlexAttention holds at its peak."""


def masked_score(mods: Mods) -> Callable[..., Tensor]:
    """Return a score_mod that applies score_mod and mask_mod: masked scores are -inf."""
    score_mod, mask_mod = mods.score_mod, mods.mask_mod

    def masked(score: Tensor, b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        out = score if score_mod is None else score_mod(score, b, h, q_idx, kv_idx)
        if mask_mod is None:
            return out
        return torch.where(mask_mod(b, h, q_idx, kv_idx), out, float("-inf"))

    return masked


def uncompiled_flex(
    q: Tensor, k: Tensor, v: Tensor, masked: Callable[..., Tensor], scale: float
) -> Tensor:
    """Run torch's uncompiled FlexAttention; `masked` is of `masked_score`."""
    return flex_attention(
        q, k, v, score_mod=masked, scale=scale, enable_gqa=q.shape[1] != k.shape[1]
    )


def too_large(sizes: AttentionSizes, device: str) -> str | None:
    """Return why the scores of uncompiled FlexAttention do not fit into memory, or None."""
    need = FLEX_COPIES * 4 * sizes.B * sizes.H * sizes.S * sizes.Skv
    free = torch.cuda.mem_get_info()[0] if device == "cuda" else 2 << 30
    text = f"S x Skv scores in float32 need {need >> 30} GiB and do not fit"
    return text if need > free // 2 else None


def flex_keeps_float32_scores(device: str) -> bool:
    """Whether this torch's uncompiled FlexAttention keeps scores in float32 for bfloat16 inputs.

    Two keys score 100 and 100.25. In bfloat16 both round to 100 and get equal weights; in float32
    the difference of the weights is tanh(0.125) = 0.124.
    """
    q = torch.zeros(1, 1, 16, 16, dtype=torch.bfloat16, device=device)
    k, v = torch.zeros_like(q)[:, :, :2].clone(), torch.zeros_like(q)[:, :, :2].clone()
    q[..., :2] = 1
    k[0, 0, :, 0], k[0, 0, 0, 1], k[0, 0, 1, 1] = 64, 36, 36.25
    v[0, 0, 0, :], v[0, 0, 1, :] = -1, 1
    with quiet(), torch.no_grad():
        out = uncompiled_flex(q, k, v, masked_score(Mods(None, None, 1.0)), 1.0)
    return abs(float(out[0, 0, 0, 0]) - 0.1244) < 0.03
