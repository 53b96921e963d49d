"""Three clocks and a wall on kernels from 2 us to 5 ms: do they agree, and what does looking cost?

    make bench-timing
    python -m benchmarks.timing_probe --kernels add-1Ki,matmul-1Ki

Per kernel: CUPTI after a flush, graph slope, blocked stream, the wall clock over a graph of all
sets, and the ratio of the kernel to itself, interleaved as the final tier does it. Needs a GPU that
nobody else uses; no candidate runs, so nothing is caged.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu_pool import gpu_slug, visible_gpus
from benchmarks.results_file import RESULTS, Row, write_results
from hotloop.errors import DeviceLost
from hotloop.worker.clock import FLUSH_BYTES
from hotloop.worker.cross_check import read_cross
from hotloop.worker.cross_clock import EMPTY_CALLS, blocked_stream_ms, empty, graph_slope_ms
from hotloop.worker.device import environment, peaks
from hotloop.worker.interleave import control_of
from hotloop.worker.persisting_l2 import release_persisting_lines
from hotloop.worker.timed import make_clock_once
from hotloop.worker.timing_rules import agreement, is_launch_bound, understated_by

SETS = 16
SETS_BYTES = 4 << 30
SAMPLES = 50
ROUNDS, BLOCK = 10, 5
WALL_MS = 30.0
RESETS = 200

Launch = Callable[[int], Any]
Make = Callable[[int], tuple[Launch, int]]
"""Builds the kernel on so many sets; returns what launches it, and bytes moved a call."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel of the probe."""

    name: str
    set_bytes: int
    make: Make


def add(exponent: int) -> Kernel:
    n = 1 << exponent

    def make(n_sets: int) -> tuple[Launch, int]:
        a, b = (torch.rand(n_sets, n, device="cuda") for _ in range(2))
        out = torch.empty_like(a)
        return lambda i: torch.add(a[i], b[i], out=out[i]), 12 * n

    return Kernel(f"add-{_size(n)}", 12 * n, make)


def softmax(rows: int, columns: int) -> Kernel:
    def make(n_sets: int) -> tuple[Launch, int]:
        x = torch.rand(n_sets, rows, columns, device="cuda")
        out = torch.empty_like(x)
        return lambda i: torch.softmax(x[i], dim=1, out=out[i]), 8 * rows * columns

    return Kernel(f"softmax-{rows}x{columns}", 8 * rows * columns, make)


def matmul(n: int) -> Kernel:
    def make(n_sets: int) -> tuple[Launch, int]:
        a, b = (torch.randn(n_sets, n, n, device="cuda").bfloat16() for _ in range(2))
        out = torch.empty_like(a)
        return lambda i: torch.mm(a[i], b[i], out=out[i]), 6 * n * n

    return Kernel(f"matmul-{_size(n)}", 6 * n * n, make)


def _size(n: int) -> str:
    for unit, name in ((1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki")):
        if n >= unit:
            return f"{n // unit}{name}"
    return str(n)


KERNELS = (
    *(add(e) for e in (10, 16, 19, 20, 21, 22, 24, 26, 30)),
    softmax(2048, 1024),
    softmax(16384, 4096),
    matmul(512), matmul(1024), matmul(2048), matmul(4096), matmul(12288),
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, write the results file, print it; 2 where there is no GPU or no such kernel."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernels", default="", help="names with commas; by default all")
    parser.add_argument("--out", type=Path, help="by default benchmarks/results/timing_GPU.json")
    args = parser.parse_args(argv)
    wanted = [name for name in args.kernels.split(",") if name]
    unknown = sorted(set(wanted) - {k.name for k in KERNELS})
    if unknown:
        known = ", ".join(k.name for k in KERNELS)
        print(f"timing_probe: expected kernels of {known}, got {unknown}", file=sys.stderr)
        return 2
    try:
        visible_gpus(1)
        slug = gpu_slug()
    except DeviceLost as exc:
        print(f"timing_probe: {exc}", file=sys.stderr)
        return 2
    common, rows = _common(), []
    print(f"empty kernel {common['empty_ms'] * 1e3:.2f} us by CUPTI")
    for kernel in KERNELS:
        if not wanted or kernel.name in wanted:
            rows.append(measure(kernel, common))
            torch.cuda.empty_cache()
            print(line(rows[-1]), flush=True)
    write_results(
        args.out or RESULTS / f"timing_{slug}.json", command="make bench-timing",
        environment=environment("cuda", "T0"), rows=rows, summary=summarise(rows, common),
    )  # fmt: skip
    return 0


def measure(kernel: Kernel, common: Row) -> Row:
    """Return one kernel by all clocks, with the seconds that each took."""
    n_sets = max(1, min(SETS, SETS_BYTES // kernel.set_bytes))
    launch, n_bytes = kernel.make(n_sets)
    seconds: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        torch.cuda.synchronize()
        start = time.perf_counter()
        found = work()
        torch.cuda.synchronize()
        seconds[name] = round(time.perf_counter() - start, 4)
        return found

    for i in range(n_sets):
        launch(i)
    cupti = timed("cupti", lambda: _cupti(launch, n_sets))
    ms = statistics.median(cupti)
    make_clock_once().pause()  # the other clocks look without its records
    answer = common | {
        "graph_slope_ms": timed("graph_slope", lambda: graph_slope_ms(launch, n_sets)),
        "blocked_stream_ms": timed("blocked_stream", lambda: blocked_stream_ms(launch, n_sets, 1)),
    }
    wall_ms = timed("wall", lambda: _wall(launch, n_sets, ms))
    control = timed("control", lambda: _control(kernel.name, launch, n_sets))
    reading = read_cross(answer)
    return {
        "problem": kernel.name, "sets": n_sets, "bytes": n_bytes,
        "all_sets_bytes": n_sets * kernel.set_bytes, "cupti_ms": ms,
        "cupti_quartiles_ms": statistics.quantiles(cupti, n=4), "wall_ms": wall_ms,
        "graph_slope_ms": answer["graph_slope_ms"],
        "blocked_stream_ms": answer["blocked_stream_ms"], "own_ms": reading.own(),
        "found": agreement(ms, reading.own()),
        "understated_by_ms": understated_by(ms, reading.own()),
        "control": control.to_json(), "launch_bound": is_launch_bound(ms), "seconds": seconds,
    }  # fmt: skip


def _cupti(launch: Launch, n_sets: int) -> list[float]:
    clock = make_clock_once()
    return [clock.measure(_bound(launch, i % n_sets))[1].elapsed_ms for i in range(SAMPLES)]


def _bound(launch: Launch, index: int) -> Callable[[], Any]:
    return lambda: launch(index)


def _wall(launch: Launch, n_sets: int, ms: float) -> float:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(n_sets):
            launch(i)
    repeats = max(1, round(WALL_MS / max(ms * n_sets, 1e-3)))
    best = float("inf")
    for _ in range(3):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(repeats):
            graph.replay()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return best * 1e3 / (repeats * n_sets)


def _control(name: str, launch: Launch, n_sets: int) -> Any:
    clock = make_clock_once()
    sides: tuple[list[list[float]], list[list[float]]] = ([], [])
    turns = itertools.cycle(range(n_sets))
    for number in range(ROUNDS):
        for side in sides if number % 2 == 0 else reversed(sides):
            calls = [_bound(launch, next(turns)) for _ in range(BLOCK)]
            side.append([clock.measure(call)[1].elapsed_ms for call in calls])
    return control_of(name, *sides, tries=1)


def _common() -> Row:
    """Return the near-empty kernel by all clocks, and what the checks cost that a call has."""
    clock = make_clock_once()
    samples = [clock.measure(lambda: empty(0))[1].elapsed_ms for _ in range(EMPTY_CALLS)]
    clock.pause()
    start = time.perf_counter()
    for _ in range(RESETS):
        release_persisting_lines()
    reset_s = (time.perf_counter() - start) / RESETS
    return {
        "empty_ms": statistics.median(samples),
        "empty_graph_slope_ms": graph_slope_ms(empty, 1),
        "empty_blocked_stream_ms": blocked_stream_ms(empty, 1, 1),
        "persisting_reset_s": reset_s,
    }


def summarise(rows: Sequence[Row], common: Row) -> Row:
    """Return what the rows amount to."""
    return common | {
        "copy_gbps": peaks("float32")["copy_gbps"],
        "flush_bytes": FLUSH_BYTES,
        "kernels": len(rows),
        "understated": [r["problem"] for r in rows if r["understated_by_ms"] is not None],
        "control_outside": [r["problem"] for r in rows if not r["control"]["holds"]],
        "control_worst": max((abs(r["control"]["ratio"] - 1.0) for r in rows), default=None),
    }


def line(row: Row) -> str:
    """Return one row for people: microseconds, the ratio to itself, seconds spent."""
    names = ("cupti_ms", "graph_slope_ms", "blocked_stream_ms", "wall_ms")
    times = "  ".join("-".rjust(9) if row[n] is None else f"{row[n] * 1e3:9.2f}" for n in names)
    spent = ", ".join(f"{name} {s:.2f}" for name, s in row["seconds"].items())
    return f"{row['problem']:18s} {times}  A/A {row['control']['ratio']:.4f}  s: {spent}"


if __name__ == "__main__":
    sys.exit(main())
