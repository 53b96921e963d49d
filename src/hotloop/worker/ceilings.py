"""Ceilings: rates that this GPU cannot exceed, from the driver's attributes.

DRAM: clock x bus width x 2 transfers, as NVIDIA's deviceQuery sample computes it. L2: every
multiprocessor takes at most 128 bytes a clock, twice what is documented for the current ones.
Matrix products: dense FLOPs per clock and multiprocessor by compute capability, such that clock x
multiprocessors x FLOPs is the data sheet's dense 16-bit rate (A100 312, H100 989, B200 2250
TFLOP/s).
"""

from __future__ import annotations

from functools import cache

from hotloop.worker import cudriver as cu
from hotloop.worker.physics_floor import Ceilings

_CLOCK_KHZ, _MULTIPROCESSORS, _MEMORY_KHZ, _BUS_BITS, _L2_BYTES = 13, 16, 36, 37, 38
_CAPABILITY_MAJOR = 75
_FLOPS_A_CLOCK = {8: 2048, 9: 4096, 10: 8192}
_L2_BYTES_A_CLOCK = 128
_COPY_SHARE = 0.85
"""A copy reaches 0.87 of an H200's data sheet; where the driver tells no rate, this makes one."""


def ceilings_of(
    *,
    clock_khz: int,
    multiprocessors: int,
    memory_khz: int,
    bus_bits: int,
    capability: int,
    l2_bytes: int,
    copy_gbps: float,
) -> Ceilings:
    """Return the ceilings from a device's attributes and its measured copy rate (GB/s)."""
    dram_gbps = 2 * memory_khz * 1e3 * bus_bits / 8 / 1e9
    per_clock = _FLOPS_A_CLOCK.get(capability)
    sm_hz = clock_khz * 1e3 * multiprocessors
    return Ceilings(
        dram_gbps=max(dram_gbps, copy_gbps if dram_gbps else copy_gbps / _COPY_SHARE),
        l2_gbps=_L2_BYTES_A_CLOCK * sm_hz / 1e9 or 10 * copy_gbps,
        l2_bytes=l2_bytes,
        tflops=per_clock * sm_hz / 1e12 if per_clock and sm_hz else None,
    )


@cache
def ceilings(copy_gbps: float) -> Ceilings:
    """Return this GPU's ceilings; the thread has a context.

    Args:
        copy_gbps: the measured copy rate, which counts where it is higher than the driver's.
    """
    return ceilings_of(
        clock_khz=_attribute(_CLOCK_KHZ),
        multiprocessors=_attribute(_MULTIPROCESSORS),
        memory_khz=_attribute(_MEMORY_KHZ),
        bus_bits=_attribute(_BUS_BITS),
        capability=_attribute(_CAPABILITY_MAJOR),
        l2_bytes=_attribute(_L2_BYTES),
        copy_gbps=copy_gbps,
    )


def _attribute(number: int) -> int:
    try:
        return cu.device_attribute(number)
    except cu.CudaDriverError:  # one that newer drivers do not tell any more
        return 0
