"""Copy outputs by a kernel that takes the same time in every process.

`Tensor.copy_` of equal, contiguous tensors is a memcpy, for which the driver may use the copy
engine: in a CUDA graph, or where the target is another process's memory, that is a third slower
than the multiprocessors. The judge takes the time of a copy off its wall clock, so the copy that it
measures has to be the copy that a candidate's process makes.
"""

from __future__ import annotations

import torch
from torch import Tensor


def copy_out(target: Tensor, source: Tensor) -> None:
    """Copy `source` into `target`, of the same shape and dtype, bit for bit in stream order."""
    words = _words(target, source)
    if words is None:
        target.copy_(source)
        return
    torch.bitwise_or(words[1], 0, out=words[0])


def _words(target: Tensor, source: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return both as flat integers; None where their memory does not lie alike."""
    flat = target.is_contiguous() and source.is_contiguous() and target.numel() > 0
    # Views that torch conjugates or negates on reading hold other bits than their values.
    if not flat or any(side.is_conj() or side.is_neg() for side in (target, source)):
        return None
    size = target.numel() * target.element_size()
    aligned = target.data_ptr() % 4 == 0 and source.data_ptr() % 4 == 0 and size % 4 == 0
    dtype = torch.int32 if aligned else torch.uint8
    return target.reshape(-1).view(dtype), source.reshape(-1).view(dtype)
