"""What a search makes small: kernel time on a GPU, a static cost where there is none.

The static cost has no unit and predicts no time. It only orders kernels that are correct anyway:
those that spill come last, then those of which fewer fit on a multiprocessor, then those that take
more shared memory. It is computed for sm_90, for which kernels are compiled where no GPU is.
"""

from __future__ import annotations

from collections.abc import Sequence

from hotloop.core.units import KIB
from hotloop.core.verdict import KernelResources, Verdict

# Limits of one multiprocessor of compute capability 9.0: CUDA C++ Programming Guide, "Technical
# Specifications per Compute Capability", and the granularities of NVIDIA's occupancy calculator.
WARPS_PER_SM = 64
BLOCKS_PER_SM = 32
REGISTERS_PER_SM = 64 * 1024
SHARED_BYTES_PER_SM = 228 * KIB
RESERVED_SHARED_BYTES = KIB
"""Shared memory that the system takes of each block."""
REGISTER_UNIT = 256
"""Registers are given to a warp in units of this many."""
SHARED_UNIT_BYTES = 128
THREADS_PER_WARP = 32
DEFAULT_WARPS = 4
"""Triton's default, where the compiler did not report the number of warps."""

SHARED_WEIGHT = 1.0 / (2 * WARPS_PER_SM)
"""All of the shared memory weighs less than one warp of occupancy: ties only."""


def objective_of(verdict: Verdict) -> float | None:
    """Return what to make small: milliseconds on `cuda`, the static cost on `cpu`.

    None unless the verdict is PASSED and, on `cuda`, was timed.
    """
    if not verdict.passed:
        return None
    if verdict.device == "cpu":
        return static_cost(verdict.resources)
    return None if verdict.performance is None else verdict.performance.latency_ms


def static_cost(resources: Sequence[KernelResources]) -> float:
    """Return the static cost of a candidate's kernels: from 0, without a unit.

    Spilled bytes of all kernels count whole; then the unoccupied share (0 to 1) of the worst
    kernel; then its shared memory, as a tie-break. What the compiler did not report counts as bad.
    """
    if not resources:
        return 1.0 + SHARED_WEIGHT
    spilled_bytes = sum(kernel.spill_bytes or 0 for kernel in resources)
    worst_frac = min(occupancy_frac(kernel) for kernel in resources)
    shared_bytes = max(kernel.shared_bytes or 0 for kernel in resources)
    shared_share = min(1.0, shared_bytes / SHARED_BYTES_PER_SM)
    # Spills come in units of 4 bytes, so they outweigh the rest, which stays under 2.
    return spilled_bytes + (1.0 - worst_frac) + SHARED_WEIGHT * shared_share


def occupancy_frac(kernel: KernelResources) -> float:
    """Return the share (0 to 1) of a multiprocessor's warps that can be resident on sm_90.

    0 when a block does not fit, or when the registers are unknown.
    """
    if kernel.registers is None:
        return 0.0
    warps = kernel.num_warps or DEFAULT_WARPS
    per_warp = _round_up(max(1, kernel.registers) * THREADS_PER_WARP, REGISTER_UNIT)
    by_registers = REGISTERS_PER_SM // per_warp // warps
    per_block = _round_up((kernel.shared_bytes or 0) + RESERVED_SHARED_BYTES, SHARED_UNIT_BYTES)
    by_shared = SHARED_BYTES_PER_SM // per_block
    blocks = min(BLOCKS_PER_SM, WARPS_PER_SM // warps, by_registers, by_shared)
    return blocks * warps / WARPS_PER_SM


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
