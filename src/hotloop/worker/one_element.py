"""Inputs with one element changed: a result that does not follow them was not computed from them.

Not covered: integers and booleans (labels and indices have ranges of their own), types of 8 bits,
and tensors with structure, which the caller leaves out.
"""

from __future__ import annotations

import random

import torch

STEP = 0.75
FEWEST = 8
"""Elements; a smaller tensor has no middle half to speak of."""
_TYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def with_one_changed(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy with one element moved most of the way to the tensor's value farthest from it.

    The new value lies within the range of the others and equals none of them: it makes no ties. Its
    place is odd and drawn in the middle half: not where a look at the ends, or at every second
    element, would find it. Takes three times the tensor's memory for a moment.
    """
    if tensor.dtype not in _TYPES or tensor.numel() < FEWEST:
        return tensor
    # The strides count: a candidate may rely on them.
    changed = torch.empty_strided(
        tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device
    )
    changed.copy_(tensor)
    n = tensor.numel()
    place = random.SystemRandom().randrange(n // 4, 3 * n // 4) | 1
    where = []
    for extent in reversed(tensor.shape):
        where.append(place % extent)
        place //= extent
    at = tuple(reversed(where))
    farthest = tensor.reshape(-1)[(tensor - tensor[at]).abs().argmax()]
    changed[at] += STEP * (farthest - tensor[at])
    return changed
