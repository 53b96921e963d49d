"""How many blocks of a kernel fit on one multiprocessor, and what limits them.

The limits are those of compute capability 9.0 (CUDA C++ Programming Guide, "Compute Capabilities",
table of technical specifications); the way in which registers are handed out, per warp in units of
256 and per quarter of the multiprocessor, is that of `cuda_occupancy.h` in the CUDA toolkit. Only
arithmetic: nothing is measured.
"""

from __future__ import annotations

from typing import NamedTuple

from hotloop.core.units import KIB
from hotloop.core.verdict import KernelResources

REGISTERS = 64 * KIB
"""32-bit registers of one multiprocessor."""
REGISTER_UNIT = 256
"""Registers are given to a warp in multiples of this."""
QUARTERS = 4
"""A warp lives in one quarter of the multiprocessor, which has a quarter of the registers."""
MAX_WARPS = 64
MAX_BLOCKS = 32
WARP = 32
SHARED_BYTES = 228 * KIB
"""Shared memory of one multiprocessor."""
BLOCK_SHARED_BYTES = 227 * KIB
"""The most that one block can have."""
RESERVED_BYTES = KIB
"""What the system takes of it for each block."""
SHARED_UNIT = 128


class Occupancy(NamedTuple):
    """What fits on one multiprocessor."""

    blocks: int
    """0 when not even one fits."""
    warps: int
    limiters: tuple[str, ...]
    """Which of `registers`, `shared memory`, `warps`, `blocks` allow no more; one at least."""

    @property
    def frac(self) -> float:
        """Warps as a share of the most that can be resident."""
        return self.warps / MAX_WARPS


def occupancy(resources: KernelResources) -> Occupancy | None:
    """Return what fits, or None where warps or registers are not known."""
    if not resources.num_warps or not resources.registers:
        return None
    warps = resources.num_warps
    limits = {
        "registers": _by_registers(resources.registers, warps),
        "shared memory": _by_shared(resources.shared_bytes or 0),
        "warps": MAX_WARPS // warps,
        "blocks": MAX_BLOCKS,
    }
    blocks = min(limits.values())
    limiters = tuple(name for name, limit in limits.items() if limit == blocks)
    return Occupancy(blocks, blocks * warps, limiters)


def _by_registers(registers: int, warps: int) -> int:
    per_warp = _round_up(registers * WARP, REGISTER_UNIT)
    return REGISTERS // QUARTERS // per_warp * QUARTERS // warps


def _by_shared(shared_bytes: int) -> int:
    if shared_bytes > BLOCK_SHARED_BYTES:
        return 0
    return SHARED_BYTES // _round_up(shared_bytes + RESERVED_BYTES, SHARED_UNIT)


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
