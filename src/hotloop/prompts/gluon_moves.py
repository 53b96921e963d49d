"""What to try with a Gluon kernel, where structure is the author's: partitions, rings, overlap.

The moves are those of the Hopper kernels of FlashAttention-3 (arXiv 2407.08608, section 3) in
Gluon's words: a loader of its own, two consumers that take turns, a softmax under the next product.
"""

from __future__ import annotations

from collections.abc import Mapping

from hotloop.prompts.counters import Move

COMPUTE_MOVES: tuple[Move, ...] = (
    Move(
        "warp_specialise",
        "Give the copies warps of their own: with `gl.warp_specialize` a loader of 1 warp and 24 "
        "registers fills a ring of 2 to 4 tiles by TMA, and the warps that multiply only wait for "
        "full buffers and hand back empty ones.",
    ),
    Move(
        "two_consumers",
        "Let two warpgroups multiply beside the loader, each with 64 rows of its own and the tiles "
        "of the other operand shared: while one works on its softmax or epilogue, the products of "
        "the other keep the tensor cores busy. Empty buffers then need an arrival from each.",
    ),
    Move(
        "overlap",
        "Run the products under other work: start the first product of step t + 1 with "
        "`is_async=True` before the softmax or epilogue of step t, and wait for it with "
        "`warpgroup_mma_wait` only where its values are used.",
    ),
    Move(
        "partition_registers",
        "Share out the registers: `worker_num_regs` takes those that a loader does not need (24 "
        "are enough) and the first partition gets what is left; 64 K a multiprocessor are 240 for "
        "each thread of two warpgroups beside a loader.",
    ),
    Move(
        "persistent",
        "Start one program a multiprocessor that walks over the tiles, so that the loads of the "
        "next tile run under the end of this one; where tiles differ in work, the largest first.",
    ),
    Move(
        "inner_loop",
        "Take work out of the inner loop: what does not depend on the loop index, masks on tiles "
        "that need none, exp2 with the factor folded into a scale, layout conversions of values "
        "that could be made in the right layout.",
    ),
    Move(
        "tma_store",
        "Write the output through shared memory by TMA: `.store` into a tile that is no longer "
        "read, `fence_async_shared()`, then one copy of the whole tile.",
    ),
)
"""Where arithmetic is the bound, most promising first."""

MEMORY_MOVES: tuple[Move, ...] = (
    Move(
        "one_pass",
        "The work is bound by memory: read each input once and write each output once; keep a row "
        "in registers between its passes if it fits.",
    ),
    Move(
        "wide_loads",
        "Let the layout ask for 16 bytes a thread: in `gl.BlockedLayout`, `size_per_thread` of 4 "
        "float32 or 8 16-bit values along the contiguous dimension, neighbouring threads beside "
        "each other, 1024 to 8192 elements a program.",
    ),
    Move(
        "bulk_loads",
        "Load whole tiles by TMA into a ring of buffers, the next ones while this one is worked "
        "on: that keeps more bytes in flight than loads into registers.",
    ),
)
"""Where memory is the bound."""

REMEDIES: Mapping[str, str] = {
    "long_scoreboard": "have more copies in flight: tiles by TMA, more buffers in the ring, or a "
    "loader partition that runs ahead.",
    "barrier": "synchronise less: hand tiles over by mbarriers between partitions, and convert "
    "layouts through shared memory less often.",
    "gmma": "overlap them with other work: start the next product before the softmax or epilogue "
    "of this one, or let two consumer partitions take turns.",
    "mio_throttle": "issue fewer of them: values made in the layout that they are used in, fewer "
    "`gl.convert_layout`, exp2 instead of exp.",
}
"""By reason that warps wait for, where Triton's remedies are no help."""

_DONE_BY: Mapping[str, tuple[str, ...]] = {
    "warp_specialise": ("warp_specialize(",),
    "tma_store": ("tma.async_store(", "tma.async_copy_shared_to_global("),
    "bulk_loads": ("tma.async_load(", "tma.async_copy_global_to_shared("),
}
"""By move: calls that a kernel which has made it already holds."""


def made_in(source: str) -> frozenset[str]:
    """Return the keys of the moves that a kernel's source has made already."""
    return frozenset(
        key for key, calls in _DONE_BY.items() if any(call in source for call in calls)
    )
