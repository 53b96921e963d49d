"""Device memory: how much there is, giving back what nobody uses, and running out of it."""

from __future__ import annotations

import os

import torch

from hotloop.core.units import GIB
from hotloop.errors import ProblemError

SCARCE_FRAC = 0.25
"""Share of the GPU's memory that candidates should find free."""
FOREIGN_BYTES = 2 * GIB
"""Beyond our tensors, a context and what is shared with a small candidate take less."""


class DoesNotFit(ProblemError):
    """The inputs need more memory than the device has left."""


def memory_bytes(device: str) -> int:
    """Return the memory of the GPU (`cuda`) or of this machine (`cpu`)."""
    if device == "cuda":
        return int(torch.cuda.mem_get_info()[1])
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def device_used_bytes() -> int:
    """Return the memory in use on the GPU, by whomever; makes a context where there is none."""
    free, total = torch.cuda.mem_get_info()
    return int(total - free)


def reserved_bytes() -> int:
    """Return the device memory that this process's tensors and their allocator's cache take."""
    return int(torch.cuda.memory_reserved())


def release_memory() -> None:
    """Give this process's cached device memory back, so that others find it free."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def leave_room() -> None:
    """Give cached device memory back where little is free: a candidate cannot ask us for ours.

    Not between timed calls: a baseline that allocates anew in its timed span looks slow.
    """
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        free, total = torch.cuda.mem_get_info()
        if free < SCARCE_FRAC * total:
            torch.cuda.empty_cache()


def ran_out(error: BaseException | None) -> bool:
    """Whether an error, or one of its causes, is that memory ran out; by type alone.

    Of torch's allocators only the CUDA one has a type for it: the CPU's raises a plain
    `RuntimeError`, which is not seen here. On a CPU, NumPy's and Python's own errors are.
    """
    while error is not None:
        if isinstance(error, (torch.OutOfMemoryError, MemoryError, DoesNotFit)):
            return True
        error = error.__cause__
    return False


def describe_memory(device: str) -> str:
    """Return how much of the device is free, in words."""
    if device != "cuda":
        return f"this machine has {memory_bytes(device) / GIB:.1f} GiB"
    free, total = torch.cuda.mem_get_info()
    own = torch.cuda.memory_allocated()
    text = f"{free / GIB:.1f} of {total / GIB:.1f} GiB are free, the judge's tensors take "
    text += f"{own / GIB:.1f} GiB"
    other = total - free - reserved_bytes()
    if other > FOREIGN_BYTES:
        text += f", its buffers and other programs (see `hotloop doctor`) {other / GIB:.1f} GiB"
    return text
