"""Persisting L2: lines that a kernel marked to stay would survive a flush of the cache.

A context may set part of the L2 aside for accesses that it marks (an access policy window). A
kernel that does so finds its inputs in cache after the flush, and looks as fast as no cold kernel
is. Before every flush the lines become ordinary ones and the part that is set aside nothing. The
limit belongs to this process's context, not to the GPU.

Source: CUDA C++ Programming Guide, "L2 Cache Set-Aside for Persisting Accesses".
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref, c_size_t
from enum import Enum
from functools import cache
from typing import Any

from hotloop.worker import cudriver as cu

_LIMIT_PERSISTING_L2 = 6  # CU_LIMIT_PERSISTING_L2_CACHE_SIZE
_MAX_PERSISTING_L2 = 108  # CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE


class PersistingL2(Enum):
    """What this process can do about persisting lines."""

    ABSENT = "absent"
    """The GPU has none (before compute capability 8.0), or nobody can tell."""
    REFUSED = "refused"
    """It has, and the driver lets nobody set any aside (MIG) or change the limit (MPS)."""
    CONTROLLED = "controlled"


def release_persisting_lines() -> None:
    """Make all persisting lines ordinary and set nothing aside; the thread has a context.

    Does nothing where that is not `CONTROLLED`.

    Raises:
        CudaDriverError: the driver refuses what it allowed before.
    """
    if persisting_l2() is not PersistingL2.CONTROLLED:
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
def persisting_l2() -> PersistingL2:
    """Return what this process can do, tried out once; the thread has a context."""
    return probe(cu.device_attribute, cu.call)


def probe(attribute: Callable[[int], int], call: Callable[..., Any]) -> PersistingL2:
    """Try what `release_persisting_lines` does.

    Args:
        attribute: returns a device attribute.
        call: calls the driver; both raise `CudaDriverError`.
    """
    try:
        if attribute(_MAX_PERSISTING_L2) <= 0:
            return PersistingL2.ABSENT
    except cu.CudaDriverError:
        return PersistingL2.ABSENT
    value = c_size_t()
    try:
        call("cuCtxGetLimit", byref(value), _LIMIT_PERSISTING_L2)
        call("cuCtxSetLimit", _LIMIT_PERSISTING_L2, c_size_t(0))
        call("cuCtxResetPersistingL2Cache")
    except cu.CudaDriverError:
        return PersistingL2.REFUSED
    return PersistingL2.CONTROLLED
