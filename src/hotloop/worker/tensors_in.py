"""The tensors among an operation's arguments and results.

Not by torch's own walk: that goes by a table that a candidate can change for the length of a call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch


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
