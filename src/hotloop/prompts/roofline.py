"""The least time that a problem takes on this device, by measured ceilings, in words.

Work over the rate of a large matrix product, bytes over the rate of a large copy, whichever takes
longer: the same bound that a verdict's roofline share is of. It is no limit where a kernel beats
the ceilings (a matmul of another size, data that stays in L2).
"""

from __future__ import annotations

from typing import NamedTuple

from hotloop.core.problem import ProblemInfo
from hotloop.core.units import MIB, format_ms


class Bound(NamedTuple):
    """Both times, in milliseconds."""

    by_flops_ms: float
    by_bytes_ms: float

    @property
    def ms(self) -> float:
        """The longer one."""
        return max(self)

    @property
    def by_work(self) -> bool:
        """Whether FLOPs bound it, not bytes."""
        return self.by_flops_ms > self.by_bytes_ms


def bound(info: ProblemInfo | None) -> Bound | None:
    """Return the bound, or None where the device's ceilings were not measured."""
    if info is None or info.io_bytes <= 0:
        return None
    copy_gbps, matmul_tflops = info.peaks.get("copy_gbps"), info.peaks.get("matmul_tflops")
    if not copy_gbps or not matmul_tflops:
        return None
    return Bound(_flops(info) / (matmul_tflops * 1e9), _bytes(info) / (copy_gbps * 1e6))


def describe_bound(info: ProblemInfo) -> str | None:
    """Return the bound as one line of what is known of the task; None where there is none."""
    times = bound(info)
    if times is None:
        return None
    rate = f"{info.peaks['copy_gbps'] / 1e3:.2f} TB/s copied"
    by_bytes = f"{format_ms(times.by_bytes_ms)} by bytes ({_bytes(info) / MIB:.4g} MiB at {rate})"
    if not times.by_flops_ms:
        return f"least time here by measured rates: {by_bytes}"
    unmasked = " that the mask leaves" if info.useful_flops else ""
    by_flops = (
        f"{format_ms(times.by_flops_ms)} by matrix products ({_flops(info) / 1e9:.4g} GFLOP"
        f"{unmasked} at {info.peaks['matmul_tflops']:.0f} TFLOP/s)"
    )
    first, second = (by_flops, by_bytes) if times.by_work else (by_bytes, by_flops)
    return f"least time here by measured rates: {first}; {second}"


def _flops(info: ProblemInfo) -> float:
    return info.useful_flops or info.flops or 0.0


def _bytes(info: ProblemInfo) -> int:
    return info.useful_bytes or info.io_bytes
