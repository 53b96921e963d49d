"""Kept memory: the inputs and goldens that a judge keeps between uses, and how much it may keep."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from hotloop.worker.draw import Draw
from hotloop.worker.module_runner import tensors_of

CACHE_FRAC = 0.35
"""Share of the free device memory that kept inputs and goldens may take."""
HOST_BYTES = 1 << 30
"""The same without a GPU."""


def kept_bytes(draw: Draw, goldens: Sequence[torch.Tensor]) -> int:
    """Return the memory that a case's inputs, parameters and goldens hold: whole storages."""
    storages = [
        t.untyped_storage() for t in (*tensors_of(draw.inputs), *draw.state.values(), *goldens)
    ]
    return sum({s.data_ptr(): s.nbytes() for s in storages}.values())


def cache_budget_bytes(device: str) -> int:
    """Return how much memory kept cases may take on `device`."""
    if device == "cuda":
        return int(torch.cuda.mem_get_info()[0] * CACHE_FRAC)
    return HOST_BYTES
