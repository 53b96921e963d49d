"""Values of q, k and v under each profile but `needles`, which needs the modifications too.

`offset` and `sorted` add a term to the scores of a row, through the last dimension of q and k: a
constant of either sign, or one that grows along the keys. Softmax does not see the first, and a
kernel that subtracts each row's true maximum sees neither.

`sink` raises the score of one key, as trained models do, far above each other one, and the others
together still count.
"""

from __future__ import annotations

import torch
from torch import Tensor

from hotloop.worker.value_profiles import Reach, fill

LARGE_SCALE = 4.0
OFFSET = 128.0
"""exp(128) is over float32's largest number and exp(-128) under its smallest."""
SINK_BEYOND = 3.5
"""The sink's score above the logarithm of how many keys a row sees under a causal mask: all others
together are 3 % of the row, ten times what 16 bits round."""
SINK_QUIET = 0.25
"""Deviation of the others' scores, so that whole blocks are 8 below the sink from 170 keys on."""
SINK_QUERY = 4.0
"""What the sink's key is divided by, so that neither side is rounded at a size of its own."""


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
    elif profile == "sink":
        _add_sink(q, k, scale or 1.0)


def _add_sink(q: Tensor, k: Tensor, scale: float) -> None:
    """Raise the first key's score; of every second head the last one's."""
    keys, rows = k.shape[2], q.shape[2]
    seen = torch.arange(keys - rows + 1, keys + 1, device=q.device).clamp(min=1)
    q.mul_(SINK_QUIET)
    q[..., -1] = (seen.log() + SINK_BEYOND) / SINK_QUERY
    k[..., -1] = 0
    k[:, 0::2, 0, -1] = SINK_QUERY / scale
    k[:, 1::2, -1, -1] = SINK_QUERY / scale
