"""A warm process that forks, enters a cage and uses the GPU there; one JSON object on stdout.

Run as a program with the scrubbed environment: it must have one thread and no CUDA context when it
forks, which a test runner cannot promise. The cage is the one that candidates get.
Arguments: tier, work folder.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
import traceback
from typing import Any

import torch
import triton  # noqa: F401  imported before the fork, as a warm process has it

from hotloop.sandbox import CageReport, candidate_cage, enter

KERNEL = """
import torch, triton
import triton.language as tl

@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)

def run(x):
    y = torch.empty_like(x)
    double[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
    return y
"""


def use_gpu(work_dir: str) -> dict[str, Any]:
    """Start CUDA, use cuBLAS, compile and run a Triton kernel, record a graph, pin memory."""
    torch.set_num_threads(1)
    start = time.perf_counter()
    a = torch.ones(512, 512, device="cuda")
    torch.cuda.synchronize()
    facts: dict[str, Any] = {"cuda_ready_s": round(time.perf_counter() - start, 3)}
    facts["matmul"] = bool((a @ a == 512).all())
    with open(f"{work_dir}/kernel.py", "w") as file:
        file.write(KERNEL)
    spec = importlib.util.spec_from_file_location("kernel", f"{work_dir}/kernel.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x = torch.arange(10_000.0, device="cuda")
    facts["triton"] = bool((module.run(x) == 2 * x).all())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = module.run(x)
    x.fill_(3.0)
    graph.replay()
    torch.cuda.synchronize()
    facts["graph"] = bool((y == 6.0).all())
    facts["pinned"] = bool(torch.ones(1 << 20, pin_memory=True).cuda().sum() == 1 << 20)
    facts["seconds"] = round(time.perf_counter() - start, 3)
    return facts


def main(tier: str, work_dir: str) -> None:
    spec = candidate_cage(tier, work_dir, gpu=0)
    start = time.perf_counter()
    child = os.fork()
    if child == 0:
        answer: dict[str, Any] = {}
        try:
            report: CageReport = enter(spec)
            answer = {"report": report.to_json(), "enter_s": round(time.perf_counter() - start, 4)}
            answer |= use_gpu(work_dir)
        except BaseException:  # noqa: BLE001  the test shows it
            answer["error"] = traceback.format_exc()
        print(json.dumps(answer), flush=True)
        os._exit(0)
    os.waitpid(child, 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
