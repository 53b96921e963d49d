"""Sanitizers on a GPU: errors that values do not show are refused, honest kernels pass."""

from __future__ import annotations

from pathlib import Path

import pytest
from scaled_rows import candidate, cuda, triton

from hotloop.core.candidate import Candidate
from hotloop.core.verdict import Status, Tier, Verdict
from hotloop.verify import LocalVerifier
from hotloop.worker.sanitizer import SHORT
from hotloop.worker.sanitizer_tools import TOOLS, find_sanitizer, tools_for

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="needs an NVIDIA GPU"),
    pytest.mark.skipif(find_sanitizer() is None, reason="needs compute-sanitizer"),
]

STORE = "if (i < n) y[i] = scaled[i] + amount;"
READ = "if (row < rows && column < columns) scaled[i] = x[i] * scale[column];"
MAX_SANITIZER_S = 32.0


def final(judge: LocalVerifier, kernel: Candidate, *, short: bool = False) -> Verdict:
    judge.short_final = short
    try:
        return judge.verify(kernel, Tier.FINAL)
    finally:
        judge.short_final = False


def assert_refused(found: Verdict, kind: str, kernel: str, tool: str) -> None:
    assert found.status is Status.RUNTIME_ERROR, (found.message, dict(found.checks_skipped))
    assert found.evidence is not None
    assert found.evidence.kind == kind, found.message
    assert found.evidence.details["kernel"] == kernel
    assert found.evidence.details["tool"] == tool
    assert found.performance is None
    assert f"sanitizer:{tool}" not in found.checks


def assert_passes(found: Verdict, language: str) -> None:
    assert found.status is Status.PASSED, found.message
    wanted, left_out = tools_for(language)
    ran = [name.split(":")[1] for name in found.checks if name.startswith("sanitizer:")]
    assert ran == list(wanted), dict(found.checks_skipped)
    assert set(found.checks_skipped) == {f"sanitizer:{tool}" for tool in left_out}
    assert found.stage_s["sanitizer"] < MAX_SANITIZER_S


SPLIT_K = """/* {
  "inputs":  {"x": ["ROWS", "COLUMNS"]},
  "state":   {"scale": ["COLUMNS"]},
  "outputs": {"y": {"shape": ["ROWS", "COLUMNS"], "dtype": "float32"}},
  "sizes":   {"N": "ROWS * COLUMNS"},
  "kernels": [
    {"name": "clear", "grid": ["cdiv(N, 256)"], "block": [256], "args": ["y", "N"]},
    {"name": "parts", "grid": ["cdiv(N, 256)", 2], "block": [256],
     "args": ["x", "scale", "y", "N", "COLUMNS"]}
  ]
} */
extern "C" __global__ void clear(float* y, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) y[i] = 0.0f;
}
extern "C" __global__ void parts(const float* x, const float* scale, float* y, int n, int columns) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) atomicAdd(&y[i], blockIdx.y == 0 ? x[i] * scale[i % columns] : 1.0f);
}
"""
THROUGH_SHARED = """__shared__ float part[256];
  part[threadIdx.x] = i < n ? scaled[i] : 0.0f;
  __syncthreads();
  part[threadIdx.x ^ 32] += amount;
  __syncthreads();
  if (i < n) y[i] = part[threadIdx.x];"""

RACE = """volatile __shared__ float part[256];
  part[threadIdx.x] = amount;
  float last = part[255 - threadIdx.x];
  if (last != amount) last = amount;
  if (i < n) y[i] = scaled[i] + last;"""


def test_honest_triton_passes(gpu_judge: LocalVerifier) -> None:
    assert_passes(final(gpu_judge, triton(columns=1000)), "triton")


def test_honest_triton_with_blocks_that_do_not_divide_passes(gpu_judge: LocalVerifier) -> None:
    grid = "grid = (triton.cdiv(x.numel(), 256),)"
    odd = (grid, "grid = (triton.cdiv(x.numel(), 256) + 3,)")
    assert_passes(final(gpu_judge, triton(odd, columns=1000)), "triton")


@pytest.mark.parametrize(
    "kernel",
    [
        pytest.param(cuda(), id="masks and scratch"),
        pytest.param(candidate(SPLIT_K, "kernel.cu"), id="atomics on a cleared output"),
        pytest.param(cuda((STORE, THROUGH_SHARED)), id="shared memory between barriers"),
    ],
)
def test_honest_cuda_passes_all_four_tools(gpu_judge: LocalVerifier, kernel: Candidate) -> None:
    assert_passes(final(gpu_judge, kernel), "cuda")


def test_read_past_the_end_in_triton_is_refused(gpu_judge: LocalVerifier) -> None:
    load = "x = tl.load(x_ptr + i, mask=inside)"
    found = final(gpu_judge, triton((load, "x = tl.load(x_ptr + i)"), columns=1000))
    assert_refused(found, "out_of_bounds", "scale_kernel", "memcheck")


def test_read_past_the_end_in_cuda_is_refused(gpu_judge: LocalVerifier) -> None:
    early = "float kept = *(const volatile float*)(x + i) * scale[column % columns];\n  "
    loose = early + READ.replace("x[i] * scale[column]", "kept")
    found = final(gpu_judge, cuda((READ, loose)))
    assert_refused(found, "out_of_bounds", "multiply", "memcheck")


def test_scratch_that_is_read_before_it_is_written_is_refused(gpu_judge: LocalVerifier) -> None:
    early = "float old = i >= 0 && row < rows && column < columns ? scaled[i] : 0.0f;\n  "
    # The poison is NaN, which a maximum leaves out: the value does not show.
    change = early + READ.replace("= x[i]", "= fmaxf(old, -1e30f) * 0.0f + x[i]")
    found = final(gpu_judge, cuda((READ, change)))
    assert_refused(found, "uninitialised_read", "multiply", "initcheck")


def test_race_in_shared_memory_that_passes_by_luck_is_refused(gpu_judge: LocalVerifier) -> None:
    found = final(gpu_judge, cuda((STORE, RACE)))
    assert_refused(found, "shared_memory_race", "add", "racecheck")


def test_the_short_tier_leaves_the_tools_out_and_says_so(gpu_judge: LocalVerifier) -> None:
    found = final(gpu_judge, cuda(), short=True)
    assert found.status is Status.PASSED, found.message
    assert found.short
    assert {f"sanitizer:{tool}" for tool in TOOLS} <= set(found.checks_skipped)
    assert set(found.checks_skipped.values()) == {SHORT}
    full = final(gpu_judge, cuda())
    assert found.performance is not None
    assert full.performance is not None
    assert found.performance.samples * 2 == full.performance.samples
