"""Measured time in words, and what to try first.

Facts first: time, baselines, share of the roofline, hardware counters where there are any,
resources and occupancy of each kernel. Then a list of moves: what counters ask for, then what
usually pays; the caller takes the first that was not tried.
On a device without a clock there are resources only, and nothing here looks like speed.
"""

from __future__ import annotations

from collections.abc import Sequence

from hotloop.core.language import GLUON, TRITON
from hotloop.core.problem import ProblemInfo
from hotloop.core.units import KIB, MIB, format_ms
from hotloop.core.verdict import KernelResources, Performance, Verdict
from hotloop.prompts import gluon_moves
from hotloop.prompts.advice import advice_move, describe_advice
from hotloop.prompts.counters import Move, counter_moves, describe_counters, lives_by_products
from hotloop.prompts.occupancy import MAX_WARPS, occupancy
from hotloop.prompts.roofline import bound
from hotloop.prompts.untrusted import one_line

__all__ = ["Move", "describe_resources", "describe_speed", "moves"]

NEAR_BOUND_FRAC = 0.9
LOW_OCCUPANCY_FRAC = 0.25
LAUNCH_MS = 0.02
"""Below this a launch and the gaps between kernels weigh as much as the work."""
BALANCE_FLOPS_PER_BYTE = 160.0
"""Dense bf16 rate over copy rate as measured on an H200: 690 TFLOP/s over 4.26 TB/s."""
MAX_KERNELS = 6


def describe_speed(verdict: Verdict, info: ProblemInfo | None = None) -> list[str]:
    """Return lines on time, baselines, roofline and counters; empty where nothing was timed."""
    performance = verdict.performance
    if performance is None:
        return []
    time = f"{format_ms(performance.latency_ms)} a call (median, spread "
    lines = [f"Time: {time}{format_ms(performance.spread_ms)}, {performance.l2} L2)."]
    if performance.baselines:
        parts = [_against(performance, name) for name in sorted(performance.baselines)]
        lines.append(f"Baselines: {'; '.join(parts)}.")
    if performance.roofline_frac is not None:
        lines.append(_roofline_line(performance.roofline_frac, performance.latency_ms, info))
    if performance.tflops:
        lines.append(f"Rate: {performance.tflops:.0f} TFLOP/s, counting dense work.")
    if performance.peak_memory_bytes:
        lines.append(f"Peak memory: {performance.peak_memory_bytes / MIB:.0f} MiB.")
    return lines + describe_counters(performance)


def _roofline_line(frac: float, latency_ms: float, info: ProblemInfo | None) -> str:
    times = bound(info)
    line = f"Roofline: {frac:.0%} of this GPU's bound by FLOPs or bytes, whichever is tighter"
    if times is None or not times.ms:
        return f"{line}."
    by = "FLOPs" if times.by_work else "bytes"
    return f"{line}: {format_ms(times.ms)} by {by} here, this takes {latency_ms / times.ms:.2g}x."


def describe_resources(kernels: Sequence[KernelResources]) -> list[str]:
    """Return one line a kernel: registers, spills, shared memory, occupancy and its limiter."""
    lines = [_resource_line(kernel) for kernel in kernels[:MAX_KERNELS]]
    if len(kernels) > MAX_KERNELS:
        lines.append(f"... and {len(kernels) - MAX_KERNELS} kernels more.")
    return lines + describe_advice(kernels[:MAX_KERNELS])


def moves(verdict: Verdict, info: ProblemInfo | None, language: str = TRITON.name) -> list[Move]:
    """Return what to try with a kernel in a language, most promising first; at least one."""
    kernels, performance = verdict.resources, verdict.performance
    is_gluon = language == GLUON.name
    found = [advice_move(kernels), *(_spills(k) for k in kernels)]
    found += counter_moves(performance, gluon_moves.REMEDIES if is_gluon else None)
    found.append(_many_kernels(kernels, performance))
    rest = [[_occupancy_move(kernels)], _bound_moves(info, performance, is_gluon=is_gluon)]
    for some in reversed(rest) if lives_by_products(performance) else rest:
        found += some
    found.append(
        Move(
            "tunables",
            "Declare `TUNABLES` for tile sizes, warps and stages: the harness "
            "sweeps them without asking you again.",
        )
    )
    return [move for move in found if move is not None]


def _against(performance: Performance, name: str) -> str:
    ratio = performance.baselines[name] / performance.latency_ms
    told = f"{ratio:.2f}x faster" if ratio >= 1 else f"{1 / ratio:.2f}x slower"
    return f"{name} {format_ms(performance.baselines[name])} (this kernel is {told})"


def _resource_line(kernel: KernelResources) -> str:
    parts = []
    if kernel.registers is not None:
        parts.append(f"{kernel.registers} registers a thread")
    if kernel.spill_bytes is not None:
        parts.append(f"{kernel.spill_bytes} bytes spilled" if kernel.spill_bytes else "no spills")
    if kernel.shared_bytes is not None:
        parts.append(f"{kernel.shared_bytes / KIB:.3g} KiB shared memory a block")
    if kernel.num_warps is not None:
        parts.append(f"{kernel.num_warps} warps")
    if kernel.num_stages is not None:
        parts.append(f"{kernel.num_stages} stages")
    fits = occupancy(kernel)
    if fits is not None:
        parts.append(
            f"occupancy {fits.warps} of {MAX_WARPS} warps (blocks a multiprocessor: "
            f"{fits.blocks}), limited by {' and '.join(fits.limiters)}"
        )
    return f"`{one_line(kernel.name, 80)}`: {', '.join(parts) or 'nothing known'}."


def _spills(kernel: KernelResources) -> Move | None:
    if not kernel.spill_bytes:
        return None
    return Move(
        "spills",
        f"`{one_line(kernel.name, 80)}` spills {kernel.spill_bytes} bytes a thread to memory: use "
        "a smaller tile or more warps, or keep fewer values alive in the loop.",
    )


def _many_kernels(
    kernels: Sequence[KernelResources], performance: Performance | None
) -> Move | None:
    short = performance is not None and performance.latency_ms < LAUNCH_MS
    if len(kernels) < 2 and not short:
        return None
    if len(kernels) >= 2:
        text = (
            f"{len(kernels)} kernels run one after the other: fuse them where one reads what "
            "another wrote, so that the tensor between them never goes to memory."
        )
        return Move("fuse", text)
    return Move(
        "launch",
        "The call is short: do less outside of the kernel (allocations, reshapes "
        "that copy, casts), and launch once.",
    )


def _occupancy_move(kernels: Sequence[KernelResources]) -> Move | None:
    for kernel in kernels:
        fits = occupancy(kernel)
        if fits is None or fits.frac >= LOW_OCCUPANCY_FRAC or "warps" in fits.limiters:
            continue
        remedy = {
            "registers": "fewer live values, a smaller tile, or more warps for the same tile",
            "shared memory": "fewer stages or smaller tiles",
            "blocks": "more warps a block",
        }[fits.limiters[0]]
        return Move(
            "occupancy",
            f"Only {fits.warps} of {MAX_WARPS} warps of `{one_line(kernel.name, 80)}` are "
            f"resident, limited by {' and '.join(fits.limiters)}: try {remedy}.",
        )
    return None


def _bound_moves(
    info: ProblemInfo | None, performance: Performance | None, *, is_gluon: bool
) -> list[Move | None]:
    if performance is not None and (performance.roofline_frac or 0) >= NEAR_BOUND_FRAC:
        return [
            Move(
                "near_bound",
                "This is near the bound of the hardware for the whole work; more "
                "needs another algorithm that reads or computes less.",
            )
        ]
    if info is None or info.io_bytes <= 0:
        return []
    intensity = (info.flops or 0.0) / info.io_bytes
    is_compute = intensity >= BALANCE_FLOPS_PER_BYTE
    if is_gluon:
        return list(gluon_moves.COMPUTE_MOVES if is_compute else gluon_moves.MEMORY_MOVES)
    if is_compute:
        return [
            Move(
                "tensor_cores",
                "The work is bound by FLOPs: keep the tensor cores busy with large "
                "tiles (128 x 128 or 128 x 64), operands in 16 bits where the "
                "inputs are, and 3 to 4 stages.",
            ),
            Move(
                "overlap",
                "Let the tensor cores work while the rest is computed: start the next product "
                "before the softmax or epilogue of this one, or keep two independent tiles in "
                "flight in each program.",
            ),
            Move(
                "inner_loop",
                "Take work out of the inner loop: what does not depend on the loop "
                "index, masks on tiles that need none, exp2 instead of exp with the "
                "factor folded into a scale.",
            ),
        ]
    return [
        Move(
            "one_pass",
            "The work is bound by memory: read each input once and write each output "
            "once; keep a row in registers between its passes if it fits.",
        ),
        Move(
            "wide_loads",
            "Make neighbouring threads read neighbouring addresses, 16 bytes each, "
            "with blocks of 1024 to 8192 elements a program.",
        ),
    ]
