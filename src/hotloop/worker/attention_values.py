"""Values of q, k and v under each profile but `needles` and `sink`, which need the modifications.

`offset` and `sorted` add a term to the scores of a row, through the last dimension of q and k: a
constant of either sign, or one that grows along the keys. Softmax does not see the first, and a
kernel that subtracts each row's true maximum sees neither. Sigmoid attention sees both, so there
`positive_mean` has all scores lower: weights that ordinary scores leave out for being small are
then all that there is.

`large` goes beyond float16 where the dtype does: q, k and v are multiplied by powers of two that
leave every bit of the scores as it is.
"""

from __future__ import annotations

import torch
from torch import Tensor

from hotloop.worker.attention_math import Mods
from hotloop.worker.value_profiles import FAR_SCALE, Reach, fill

LARGE_SCALE = 4.0
OFFSET = 128.0
"""exp(128) is over float32's largest number and exp(-128) under its smallest."""
SIGMOID_LOWER = 4.0
"""Weights are exp(-4) = 2 % of what they are on ordinary values."""


def fill_attention(
    tensors: tuple[Tensor, Tensor, Tensor], profile: str, gen: torch.Generator, mods: Mods
) -> None:
    """Overwrite q (B, H, S, D), k and v (B, Hkv, Skv, D)."""
    q, k, v = tensors
    base = profile if profile in ("uniform", "small", "sparse", "constant_rows") else "normal"
    for tensor in tensors:
        fill(tensor, base, gen, Reach())
    scale = mods.scale or 1.0
    if profile == "positive_mean":
        v.uniform_(1, 2, generator=gen)
        if mods.sigmoid:
            q[..., -1] = -SIGMOID_LOWER / scale
            k[..., -1] = 1
    elif profile == "large":
        q.mul_(LARGE_SCALE)
        if torch.finfo(q.dtype).max > FAR_SCALE**2:
            _move_apart(q, k)
            v.mul_(FAR_SCALE)
    elif profile == "offset":
        signs = torch.ones(q.shape[2], device=q.device)
        signs[::2] = -1  # rows of one tile go both ways
        q[..., -1] = signs * (OFFSET / abs(scale))
        k[..., -1] = 1
    elif profile == "sorted":
        q[..., -1] = OFFSET / scale
        k[..., -1] = torch.linspace(-1, 1, k.shape[2], device=k.device)


def _move_apart(q: Tensor, k: Tensor) -> None:
    """Scale q up and k down as far, and of every second key-value head the other way about."""
    up = torch.full(k.shape[:2], FAR_SCALE, device=k.device)
    up.view(-1)[1::2] = 1 / FAR_SCALE
    k.div_(up[..., None, None])
    q.mul_(up.repeat_interleave(q.shape[1] // k.shape[1], dim=1)[..., None, None])
