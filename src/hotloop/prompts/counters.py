"""Hardware counters in words: what they are, what they mean, and what to try because of them.

The steps of the reading (over 80 % of a peak is busy, below 60 % of all of them is waiting) are
those of the "GPU Speed Of Light" rule of Nsight Compute. Where there are no counters nothing is
said here; `speed.py` then goes by registers, occupancy and the roofline.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hotloop.core.verdict import Performance
from hotloop.prompts.untrusted import one_line

BUSY_FRAC = 0.8
WAITING_FRAC = 0.6
POOR_LOADS_FRAC = 0.5
CONFLICTS_FRAC = 0.3
"""Shared-memory passes that only repeat others; a few come with every transposed tile."""
TRAFFIC_FRAC = 0.3
"""Below this share of DRAM's peak, bytes that are fetched in vain cost next to nothing."""
TENSOR_FRAC = 0.2
"""From here on a kernel lives by its matrix products, and few resident warps are right for it."""


class Move(NamedTuple):
    """One thing to try."""

    key: str
    """Short and stable, so that a run can remember what it has asked for."""
    text: str


_NAMES = {
    "dram_throughput_frac": "DRAM {:.0%} of peak",
    "l2_hit_frac": "L2 hits {:.0%}",
    "sm_throughput_frac": "multiprocessors {:.0%} of peak",
    "tensor_pipe_frac": "tensor pipe {:.0%} busy",
    "achieved_occupancy_frac": "{:.0%} of the warp slots filled",
    "global_load_used_frac": "{:.0%} of the bytes that loads fetch are used",
    "shared_conflict_frac": "{:.0%} of the shared-memory passes are bank conflicts",
}

_STALLS: Mapping[str, tuple[str, str]] = {
    "long_scoreboard": (
        "for loads from global memory",
        "have more loads in flight: more stages (`num_stages`), loads issued before the work that "
        "does not need them, two tiles a step, or more resident warps.",
    ),
    "short_scoreboard": (
        "for shared memory or for slow functions (exp, division)",
        "keep operands in registers, use exp2 with the factor folded into a scale, and reduce "
        "across warps less often.",
    ),
    "mio_throttle": (
        "for a place in the queue of shared memory and slow functions",
        "issue fewer of them: wider shared-memory accesses, fewer layout changes and transposes, "
        "exp2 instead of exp.",
    ),
    "lg_throttle": (
        "for a place in the queue of global memory",
        "make fewer and wider accesses: 16 bytes a thread, neighbours at neighbouring addresses.",
    ),
    "barrier": (
        "for each other at barriers",
        "use fewer warps a block, let one warp own a whole row of a reduction, and synchronise "
        "once a step.",
    ),
    "math_pipe_throttle": (
        "for a full arithmetic pipe",
        "do less arithmetic of that kind: hoist what does not change, use the tensor cores, skip "
        "masks on tiles that need none.",
    ),
    "wait": (
        "for the fixed latency of the instruction before",
        "give each warp independent work: process two rows or tiles side by side, unroll.",
    ),
    "gmma": (
        "for matrix products that run",
        "overlap them with other work: start the next product before the softmax or epilogue of "
        "this one, or let two groups of warps take turns.",
    ),
}
"""By reason: what warps wait for, and what helps (Nsight Compute's Profiling Guide, "Warp Stall
Reasons")."""


def describe_counters(performance: Performance | None) -> list[str]:
    """Return the counters and their reading, a line each; empty where there are none."""
    if performance is None or not performance.counters:
        return []
    values = performance.counters
    parts = [text.format(values[name]) for name, text in _NAMES.items() if name in values]
    reason, share = _top_stall(values)
    if reason:
        parts.append(f"warps wait mostly {_STALLS[reason][0]} ({share:.0%} of their time)")
    if not parts:
        return []
    counted = f"Counters of {_kernel(performance)}: {'; '.join(parts)}."
    return [counted, f"Reading: {_reading(values)}."]


def counter_moves(
    performance: Performance | None, remedies: Mapping[str, str] | None = None
) -> list[Move]:
    """Return what the counters ask for, most promising first; empty where there are none.

    Args:
        performance: with the counters.
        remedies: by reason that warps wait for: what helps in place of what helps in general.
    """
    if performance is None or not performance.counters:
        return []
    values, kernel = performance.counters, _kernel(performance)
    found = [rule(values, kernel) for rule in (_loads, _conflicts, _dram, _pipes)]
    found.append(_stall(values, kernel, remedies or {}))
    return [move for move in found if move is not None]


def _kernel(performance: Performance) -> str:
    name = f"`{one_line(performance.counters_kernel or 'the kernel', 80)}`"
    share = performance.counters.get("time_share_frac")
    return f"{name} ({share:.0%} of the kernels' time)" if share else name


def _reading(values: Mapping[str, float]) -> str:
    dram, tensor, other = (
        values.get(f"{name}_frac", 0.0)
        for name in ("dram_throughput", "tensor_pipe", "sm_throughput")
    )
    if dram >= max(WAITING_FRAC, tensor):
        return f"memory-bound, {dram:.0%} of DRAM peak"
    if tensor >= WAITING_FRAC:
        return f"compute-bound, the tensor pipe is {tensor:.0%} busy"
    if other >= WAITING_FRAC:
        return f"bound by instructions, not by memory or tensor cores ({other:.0%} of peak)"
    return "bound by latency: neither memory nor arithmetic is near its peak, warps wait"


def _loads(values: Mapping[str, float], kernel: str) -> Move | None:
    used = values.get("global_load_used_frac", 1.0)
    if used >= POOR_LOADS_FRAC or values.get("dram_throughput_frac", 1.0) < TRAFFIC_FRAC:
        return None
    text = (
        f"Only {used:.0%} of the bytes that the loads of {kernel} fetch are used: make "
        "neighbouring threads read neighbouring addresses, or load a tile along its contiguous "
        "dimension and transpose it on chip."
    )
    return Move("coalesce", text)


def _conflicts(values: Mapping[str, float], kernel: str) -> Move | None:
    share = values.get("shared_conflict_frac", 0.0)
    if share < CONFLICTS_FRAC or _is_busy(values):
        return None  # another limit is reached first
    text = (
        f"{share:.0%} of the shared-memory passes of {kernel} are bank conflicts: avoid transposes "
        "through shared memory, pad or swizzle its rows, or change the tile's shape."
    )
    return Move("bank_conflicts", text)


def _dram(values: Mapping[str, float], kernel: str) -> Move | None:
    dram = values.get("dram_throughput_frac", 0.0)
    if dram < BUSY_FRAC:
        return None
    text = (
        f"{kernel} moves data at {dram:.0%} of DRAM peak: only fewer bytes make it faster. Read "
        "each input once, keep what is used again on chip, and order programs so that neighbours "
        "share what lies in L2."
    )
    return Move("fewer_bytes", text)


def _pipes(values: Mapping[str, float], kernel: str) -> Move | None:
    tensor, sm = values.get("tensor_pipe_frac", 0.0), values.get("sm_throughput_frac", 0.0)
    if tensor >= BUSY_FRAC:
        text = (
            f"The tensor pipe of {kernel} is {tensor:.0%} busy: only less work makes it faster. "
            "Skip tiles that are masked out, and use the narrowest operands that the rules allow."
        )
        return Move("less_work", text)
    if sm >= BUSY_FRAC:
        text = (
            f"{kernel} is bound by its instructions ({sm:.0%} of peak, tensor pipe {tensor:.0%}): "
            "take address arithmetic, masks and conversions out of the inner loop."
        )
        return Move("fewer_instructions", text)
    return None


def _stall(values: Mapping[str, float], kernel: str, remedies: Mapping[str, str]) -> Move | None:
    reason, share = _top_stall(values)
    if reason is None or _is_busy(values):
        return None
    waits_for, remedy = _STALLS[reason]
    remedy = remedies.get(reason, remedy)
    text = f"Warps of {kernel} wait {waits_for}, {share:.0%} of their time: {remedy}"
    return Move(f"stall_{reason}", text)


def _is_busy(values: Mapping[str, float]) -> bool:
    """Whether memory or the tensor cores are near their peak."""
    busy = max(values.get("dram_throughput_frac", 0.0), values.get("tensor_pipe_frac", 0.0))
    return busy >= BUSY_FRAC


def lives_by_products(performance: Performance | None) -> bool:
    """Whether the tensor cores do a good part of the work; False where nothing was counted."""
    counters = {} if performance is None else performance.counters
    return counters.get("tensor_pipe_frac", 0.0) >= TENSOR_FRAC


def _top_stall(values: Mapping[str, float]) -> tuple[str | None, float]:
    known = {r: values[f"stall_{r}_frac"] for r in _STALLS if f"stall_{r}_frac" in values}
    reason = max(known, key=lambda r: known[r], default=None)
    return reason, known[reason] if reason else 0.0
