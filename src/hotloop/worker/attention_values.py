"""Values of q, k and v under each profile but `needles`, which needs the modifications too.

`offset` and `sorted` add a term to the scores of a row, through the last dimension of q and k: a
constant of either sign, or one that grows along the keys. Softmax does not see the first, and a
kernel that subtracts each row's true maximum sees neither.
"""

from __future__ import annotations

import torch
from torch import Tensor

from hotloop.worker.value_profiles import Reach, fill

LARGE_SCALE = 4.0
OFFSET = 128.0
"""exp(128) is over float32's largest number and exp(-128) under its smallest."""


def fill_attention(
    tensors: tuple[Tensor, Tensor, Tensor], profile: str, gen: torch.Generator, scale: float
) -> None:
    """Overwrite q (B, H, S, D), k and v (B, Hkv, Skv, D); `scale` is that of the scores."""
    q, k, v = tensors
    base = profile if profile in ("uniform", "small", "sparse", "constant_rows") else "normal"
    for tensor in tensors:
        fill(tensor, base, gen, Reach())
    if profile == "positive_mean":
        v.uniform_(1, 2, generator=gen)
    elif profile == "large":
        q.mul_(LARGE_SCALE)
    elif profile == "offset":
        signs = torch.ones(q.shape[2], device=q.device)
        signs[::2] = -1  # rows of one tile go both ways
        q[..., -1] = signs * (OFFSET / (abs(scale) or 1.0))
        k[..., -1] = 1
    elif profile == "sorted":
        q[..., -1] = OFFSET / (scale or 1.0)
        k[..., -1] = torch.linspace(-1, 1, k.shape[2], device=k.device)
