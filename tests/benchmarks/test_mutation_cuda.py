"""CUDA sources are rewritten token by token; comments and strings stay as they are."""

import pytest
from benchmarks.mutation.cuda_tokens import text_of, tokens_of
from benchmarks.mutation.rules_cuda import CUDA_RULES, cuda_mutants
from benchmarks.mutation.substrates import MUTANTS
from benchmarks.results_file import ROOT

SOURCES = sorted((*(MUTANTS / "cuda").glob("*.cu"), *(ROOT / "examples" / "cuda").glob("*.cu")))
KERNEL = """// a comment: i < n && __syncthreads()
__global__ void f(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float top = -INFINITY;
  for (int k = 0; k < n; k += 32) { top = fmaxf(top, x[i * n + k]); }
  __syncthreads();
  if (i < n && top > 0.5f) y[i] += expf(x[i] / 2.0f);
}
"""
EXPECTED = {
    "comparison_edge": "k <= n",
    "comparison_negated": "k >= n",
    "mask_and_to_or": "i < n || top",
    "bound_short": "k < (n - 1)",
    "sync_dropped": "}\n  ;\n  if",
    "accumulator_overwritten": "y[i] = expf",
    "accumulator_sign": "y[i] -= expf",
    "maximum_minimum": "fminf(top, x",
    "function_swapped": "exp2f(x[i]",
    "function_dropped": "+= (x[i] / 2.0f)",
    "axis_of_thread": "threadIdx.y",
    "thread_for_block": "blockIdx.x * blockDim.x + blockIdx.x",
    "stride_dropped": "x[i  + k]",
    "identity_zero": "top = -0.0f",
    "condition_dropped": "if (true) y[i]",
    "number_off_by_one": "k += 33",
    "number_scaled": "top > 0.25f",
    "fewer_bits": "__half top",
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_rule_writes_the_fault_it_names(name):
    texts = [m.source for m in cuda_mutants(KERNEL) if m.rule == name]
    assert any(EXPECTED[name] in text for text in texts), texts


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.stem)
def test_tokens_joined_are_the_source(path):
    source = path.read_text(encoding="utf-8")
    assert text_of(tokens_of(source)) == source
    found = cuda_mutants(source)
    assert len({m.source for m in found}) == len(found) >= 20


def test_comments_strings_and_the_launch_description_are_left_alone():
    for mutant in cuda_mutants(KERNEL):
        assert mutant.source.startswith("// a comment: i < n && __syncthreads()\n")
    for path in SOURCES:
        head = path.read_text(encoding="utf-8").split("*/")[0]
        assert all(m.source.startswith(head) for m in cuda_mutants(path.read_text("utf-8")))


def test_there_are_rules_of_many_classes():
    assert len(CUDA_RULES) >= 20
    assert {"sync", "masks", "tiles", "accumulators", "types"} <= {
        g for g, _ in CUDA_RULES.values()
    }
