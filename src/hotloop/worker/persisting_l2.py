"""Persisting L2: lines that a kernel marked to stay would survive a flush of the cache.

A context may set part of the L2 aside for accesses that it marks (an access policy window). A
kernel that does so finds its inputs in cache after the flush, and looks as fast as no cold kernel
is. Before every flush the lines become ordinary ones and the part that is set aside nothing. The
limit belongs to this process's context, not to the GPU.

Source: CUDA C++ Programming Guide, "L2 Cache Set-Aside for Persisting Accesses".
"""

from __future__ import annotations

from ctypes import byref, c_size_t
from functools import cache

from hotloop.worker import cudriver as cu

_LIMIT_PERSISTING_L2 = 6  # CU_LIMIT_PERSISTING_L2_CACHE_SIZE
_MAX_PERSISTING_L2 = 108  # CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE


def release_persisting_lines() -> None:
    """Make all persisting lines ordinary and set nothing aside; the thread has a context.

    Does nothing on GPUs that have no such lines (before compute capability 8.0).

    Raises:
        CudaDriverError: the driver refuses.
    """
    if not _has_persisting_l2():
        return
    if set_aside_bytes():
        cu.call("cuCtxSetLimit", _LIMIT_PERSISTING_L2, c_size_t(0))
    cu.call("cuCtxResetPersistingL2Cache")


def set_aside_bytes() -> int:
    """Return how much of the L2 this context has set aside."""
    value = c_size_t()
    cu.call("cuCtxGetLimit", byref(value), _LIMIT_PERSISTING_L2)
    return value.value


@cache
def _has_persisting_l2() -> bool:
    try:
        return cu.device_attribute(_MAX_PERSISTING_L2) > 0
    except cu.CudaDriverError:
        return False
