"""Time a copy of 6.4 GB on the GPU: as a memcpy and by a kernel, alone and in a CUDA graph.

    python -m benchmarks.copy_out [--out FILE]

What the judge takes off its wall clock for copying outputs has to be what the copy takes where it
is made, which is in a CUDA graph. Also times a ReLU of the same size with each copy behind it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.results_file import RESULTS, Row, write_results
from hotloop.worker.copy_out import copy_out
from hotloop.worker.device import environment

ELEMENTS = 1_600_000_000
CALLS = 10

Copy = Callable[[torch.Tensor, torch.Tensor], Any]
COPIES: dict[str, Copy] = {"memcpy": torch.Tensor.copy_, "kernel": copy_out}


def main() -> None:
    """Measure, write the results file, print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS / "copy_out_h200.json")
    out = parser.parse_args().out
    source = torch.rand(ELEMENTS, device="cuda")
    target = torch.empty_like(source)
    rows = [_row("relu", lambda: torch.relu(source))]
    for name, copy in COPIES.items():
        rows.append(_row(f"copy by {name}", _bound(copy, target, source)))
        rows.append(_row(f"relu, copy by {name}", _after_relu(copy, target, source)))
    summary = {"bytes_copied": source.nbytes, "calls_each": CALLS}
    write_results(
        out, command="make bench-copy", environment=environment("cuda", "T0"), rows=rows,
        summary=summary,
    )  # fmt: skip
    for row in rows:
        print(f"{row['what']:24s} loop {row['loop_ms']:6.3f} ms  graph {row['graph_ms']:6.3f} ms")


def _bound(copy: Copy, target: torch.Tensor, source: torch.Tensor) -> Callable[[], Any]:
    return lambda: copy(target, source)


def _after_relu(copy: Copy, target: torch.Tensor, source: torch.Tensor) -> Callable[[], Any]:
    return lambda: copy(target, torch.relu(source))


def _row(what: str, work: Callable[[], Any]) -> Row:
    return {"what": what, "loop_ms": _ms(work), "graph_ms": _ms(_captured(work))}


def _ms(work: Callable[[], Any]) -> float:
    work()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(CALLS):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / CALLS * 1e3


def _captured(work: Callable[[], Any]) -> Callable[[], Any]:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


if __name__ == "__main__":
    main()
