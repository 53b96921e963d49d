"""The tensors among an operation's arguments and results.

Not by torch's own walk: that goes by a table that a candidate can change for the length of a call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

MAX_TABLE = 4096
"""Elements of a tensor of 8-byte integers that may be addresses, as grouped products take."""


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in nested tuples, lists and dictionaries, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from tensors_in(part)
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from tensors_in(part)


def addresses_in(tensor: torch.Tensor) -> list[int]:
    """Return the numbers in a small tensor of 8-byte integers, which may be addresses."""
    if tensor.element_size() != 8 or tensor.is_floating_point() or tensor.is_complex():
        return []
    found: list[int] = tensor.flatten().tolist() if tensor.numel() <= MAX_TABLE else []
    return found
