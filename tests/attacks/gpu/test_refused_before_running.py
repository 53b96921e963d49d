"""What could take a GPU or a host down is refused unread and never runs; the attacks that do run
are not refused by the same rules, or they would prove nothing of the rest.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from gpu_attacks import ALL, honest
from scaled_rows import CUDA, candidate, cuda, triton

from hotloop.core.candidate import Candidate
from hotloop.core.problem import Policy
from hotloop.verify.static_rules import check_candidate
from hotloop.worker import build_cuda
from hotloop.worker.module_host import ContractError

needs_compiler = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
BUILD = {
    "inputs": [{"shape": [8, 48], "strides": [48, 1], "dtype": "float32"}],
    "state": {"scale": {"shape": [48], "strides": [1], "dtype": "float32"}},
}
FIRST = 'extern "C" __global__ void multiply'


def rule_of(kernel: Candidate) -> str | None:
    found = check_candidate(kernel, Policy(languages=("triton", "cuda")))
    return found.rule if found else None


def importing(line: str) -> Candidate:
    return triton(("import math\n", f"import math\n{line}\n"))


DEADLY: dict[str, Candidate] = {
    "managed variable": cuda((FIRST, f"__managed__ int flag;\n{FIRST}")),
    "managed memory": importing("SOURCE = 'void f() { cudaMallocManaged(0, 0, 1); }'"),
    "managed memory of the driver": importing("SOURCE = 'cuMemAllocManaged'"),
    "advice": importing("SOURCE = 'cudaMemAdvise(p, n, cudaMemAdviseSetPreferredLocation, 0)'"),
    "prefetch": importing("SOURCE = 'cuMemPrefetchAsync'"),
    "multicast object": importing("SOURCE = 'cuMulticastCreate(&h, &p)'"),
    "multicast binding": importing("SOURCE = 'cuMulticastBindAddr'"),
    "multicast instruction": cuda((FIRST, f'// \n#define A "multimem.red"\n{FIRST}'),
                                  ("  if (i < n) y[i]", "  multimem(1);\n  if (i < n) y[i]")),
    "symmetric memory": importing("import torch.distributed._symmetric_memory as memory"),
    "part of torch.distributed": importing("from torch import distributed"),
    "NVML": importing("import pynvml"),
    "locked clocks": importing("SOURCE = 'nvmlDeviceSetGpuLockedClocks'"),
    "a reset": importing("SOURCE = 'cudaDeviceReset();'"),
    "a printf buffer of 1 GiB": importing("SOURCE = 'cudaDeviceSetLimit(2, 1 << 30)'"),
    "the driver by hand": importing("import ctypes"),
}  # fmt: skip


@pytest.mark.parametrize("name", DEADLY)
def test_deadly_candidate_is_refused_unread(name: str) -> None:
    assert rule_of(DEADLY[name]) in ("banned_name", "banned_import")


@pytest.mark.parametrize("name", ALL)
def test_attack_that_runs_is_not_stopped_by_these_rules(name: str) -> None:
    assert rule_of(ALL[name]) is None


@pytest.mark.parametrize("kernel", [honest(), candidate(CUDA, "kernel.cu")])
def test_honest_candidate_is_not_either(kernel: Candidate) -> None:
    assert rule_of(kernel) is None


def build(folder: Path, kernel: Candidate) -> dict[str, object]:
    path = folder / "kernel.cu"
    path.write_text(kernel.text())
    return build_cuda.build(path, json.loads(json.dumps(BUILD)))


@needs_compiler
@pytest.mark.slow
def test_a_managed_variable_that_the_text_hides_is_found_in_what_was_compiled(
    tmp_path: Path,
) -> None:
    hidden = cuda(
        (FIRST, f"__attribute__((managed)) __device__ float hidden[4];\n{FIRST}"),
        ("y[i] = scaled[i] + amount", "y[i] = scaled[i] + amount + hidden[i & 3]"),
    )
    assert rule_of(hidden) is None
    with pytest.raises(ContractError, match="`hidden` lies in managed memory"):
        build(tmp_path, hidden)
    assert not (tmp_path / "kernel.cubin").exists()


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n, kernel in ALL.items() if kernel.language == "cuda"])
def test_attack_in_cuda_compiles(tmp_path: Path, name: str) -> None:
    assert build(tmp_path, ALL[name])["status"] == "ok"
