"""How much memory a device has in all, used or not."""

from __future__ import annotations

import os

import torch


def memory_bytes(device: str) -> int:
    """Return the memory of the GPU (`cuda`) or of this machine (`cpu`)."""
    if device == "cuda":
        return int(torch.cuda.mem_get_info()[1])
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
