"""The schedule space of the Hopper attention family, and what a point of it means in numbers.

The space is small on purpose: what warp specialisation leaves to choose is how much is in flight,
who may issue when, and how query tiles are dealt out. Stages follow from what shared memory holds.
"""

from __future__ import annotations

from dataclasses import dataclass

from hotloop.core.graph import AttentionSpec
from hotloop.core.space import Dimension, Point, Space
from hotloop.templates.attention.plan import ELEMENT_BYTES, AttentionPlan

ROWS = 64
"""Query rows of one consumer warpgroup: the M of wgmma (PTX ISA, wgmma.mma_async)."""

SHARED_BYTES = 225 * 1024
"""227 KiB a block on sm_90, less barriers and what the compiler keeps there for itself."""

MAX_STAGES = 4
"""More tiles in flight than this hide no more latency."""

REGISTERS = {2: (240, 24), 3: (160, 32)}
"""Registers a thread for consumers and producer, by the number of consumers: they fill the
register file of 64 K (the producer counts as four warps)."""

TMA_ALIGNMENT_BYTES = 16
"""Of rows read by the copy engine (CUDA driver API, cuTensorMapEncodeTiled)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HopperSchedule:
    """One schedule point, in the numbers that the kernel is written with."""

    consumers: int
    block_n: int
    block_d: int
    stages: int
    is_pingpong: bool
    is_persistent: bool
    shares_q: bool
    """Whether the output is staged where q came."""
    q_tiles: int
    key_tiles: int
    work: int
    element_bytes: int

    @property
    def block_m(self) -> int:
        """Query rows of a program."""
        return self.consumers * ROWS

    @property
    def tile_bytes(self) -> int:
        """Bytes of one tile of k or v."""
        return self.block_n * self.block_d * self.element_bytes

    @property
    def rows_bytes(self) -> int:
        """Bytes of the q of one consumer."""
        return ROWS * self.block_d * self.element_bytes

    @property
    def consumer_registers(self) -> int:
        """Registers of a consumer's thread."""
        return REGISTERS[self.consumers][0]

    @property
    def producer_registers(self) -> int:
        """Registers of a producer's thread."""
        return REGISTERS[self.consumers][1]

    @property
    def shared_bytes(self) -> int:
        """Shared memory for tiles."""
        rows = self.consumers * self.rows_bytes * (1 if self.shares_q else 2)
        return rows + 2 * self.stages * self.tile_bytes


def is_covered(spec: AttentionSpec) -> bool:
    """Whether the family has kernels for these sizes and this dtype."""
    if ELEMENT_BYTES.get(spec.dtype) != 2 or not 16 <= spec.D <= 256:
        return False
    return spec.D * ELEMENT_BYTES[spec.dtype] % TMA_ALIGNMENT_BYTES == 0


def schedule_of(plan: AttentionPlan, point: Point) -> HopperSchedule:
    """Work out the numbers of a complete schedule `point`."""
    spec = plan.spec
    size = ELEMENT_BYTES[spec.dtype]
    consumers, block_n = int(point["consumers"]), int(point["BLOCK_N"])
    block_d = max(1 << (spec.D - 1).bit_length(), 16)
    q_tiles = -(-spec.S // (consumers * ROWS))
    tile = block_n * block_d * size
    rows = consumers * ROWS * block_d * size
    shares_q = 2 * rows + 4 * tile > SHARED_BYTES
    room = SHARED_BYTES - rows * (1 if shares_q else 2)
    return HopperSchedule(
        consumers=consumers,
        block_n=block_n,
        block_d=block_d,
        stages=min(room // (2 * tile), MAX_STAGES),
        is_pingpong=bool(point["pingpong"]),
        is_persistent=bool(point["persistent"]),
        shares_q=shares_q,
        q_tiles=q_tiles,
        key_tiles=-(-spec.Skv // block_n),
        work=spec.B * spec.H * q_tiles,
        element_bytes=size,
    )


def hopper_space(plan: AttentionPlan) -> Space:
    """Return the dimensions that make sense for `plan`, and its starting points."""
    block_d = max(1 << (plan.spec.D - 1).bit_length(), 16)
    is_uneven = plan.mask is not None
    # Narrow tiles waste less where many are seen in part; else wide ones keep wgmma busy.
    narrow = (64,) if is_uneven and not plan.uses_tanh else ()
    keys = (64,) if block_d > 128 else (128, *narrow)
    dimensions = [Dimension(name="BLOCK_N", choices=keys, ordered=True)]
    if is_uneven:
        structures = ("closed",) if plan.region.is_exact else ("ranges", "lists", "closed")
        dimensions.append(Dimension(name="tiles", choices=structures))
    # Three consumers have 192 rows, which a map of tiles, made in powers of two, cannot have.
    several = (3, 2) if block_d <= 64 and not is_uneven else (2,)
    dimensions.append(Dimension(name="consumers", choices=several))
    dimensions.append(Dimension(name="pingpong", choices=(True, False)))
    dimensions.append(Dimension(name="persistent", choices=(True, False)))
    if plan.uses_tanh:
        dimensions.append(Dimension(name="tanh", choices=("approx", "exp2")))
    space = Space(dimensions=tuple(dimensions))
    return Space(dimensions=space.dimensions, starts=_starts(space))


def _starts(space: Space) -> tuple[Point, ...]:
    """Return the best guess and its variations, one choice apart."""
    first = space.complete({})
    starts: list[Point] = [first]
    for dimension in space.dimensions:
        if len(dimension.choices) > 1:
            starts.append(space.complete({**first, dimension.name: dimension.choices[1]}))
    return tuple(starts)
