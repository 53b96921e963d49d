"""The physics floor: no kernel moves its bytes, or does its work, faster than the device can.

t >= max(bytes from DRAM / DRAM rate, all bytes / L2 rate, FLOPs / peak), less 5 % for the clocks.
Rates are what the hardware cannot exceed (driver's figures, or a measured rate that is higher), not
what is usual: an honest kernel reaches 90 % of them, and must never be refused.

Output bytes count for DRAM only beyond the L2: a kernel ends with its last stores still in cache.
With a warm cache inputs count only beyond the L2, too. FLOPs count where no algebra can lower them:
in attention by its mask, not in models (a diagonal matrix, a sum taken first, Winograd's
convolution).

Not here: which bytes must be read (`compulsory.py`), what the device is (`ceilings.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

SHARE_FRAC = 0.95


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What a device cannot exceed."""

    dram_gbps: float
    l2_gbps: float
    l2_bytes: int
    tflops: float | None
    """Dense matrix products in 16 bits; None when the architecture is not known."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What one call cannot do without."""

    read_bytes: int
    """Of inputs; parameters may be packed ahead."""
    written_bytes: int
    """Of outputs."""
    flops: float = 0.0
    """Of matrix products in any dtype: float16 is as exact as TF32 and runs at the full rate."""


def least_ms(demand: Demand, ceilings: Ceilings, *, warm: bool) -> float:
    """Return the time in milliseconds below which no call can be.

    Args:
        demand: of one call.
        ceilings: of the device.
        warm: whether the L2 may hold inputs from the call before.
    """
    l2_bytes = ceilings.l2_bytes
    from_dram = max(0, demand.read_bytes - l2_bytes) if warm else demand.read_bytes
    from_dram += max(0, demand.written_bytes - l2_bytes)
    by_dram_ms = from_dram / (ceilings.dram_gbps * 1e6)
    by_l2_ms = (demand.read_bytes + demand.written_bytes) / (ceilings.l2_gbps * 1e6)
    by_work_ms = 0.0 if ceilings.tflops is None else demand.flops / (ceilings.tflops * 1e9)
    return max(by_dram_ms, by_l2_ms, by_work_ms)


def is_impossible(ms: float, least: float) -> bool:
    """Whether a time in milliseconds is under the floor by more than clocks can be wrong."""
    return ms < SHARE_FRAC * least
