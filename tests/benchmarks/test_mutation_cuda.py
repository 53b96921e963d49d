"""CUDA sources are rewritten token by token; comments and strings stay as they are."""

import contextlib
import random
import shutil

import pytest
from benchmarks.mutation.cuda_rule import cuda_mutants
from benchmarks.mutation.cuda_tokens import text_of, tokens_of
from benchmarks.mutation.rules import CUDA_RULES, cuda_rules_of
from benchmarks.mutation.substrates import MUTANTS
from benchmarks.results_file import ROOT

from hotloop.worker.cuda_compiler import CompileFailedError, compile_by_nvcc

SOURCES = sorted((*(MUTANTS / "cuda").glob("*.cu"), *(ROOT / "examples" / "cuda").glob("*.cu")))
KERNEL = """// a comment: i < n && __syncthreads()
__global__ void f(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float top = -INFINITY;
  for (int k = 0; k < n; k += 32) { top = fmaxf(top, x[i * n + k]); }
  __syncthreads();
  if (i < n && top > 0.5f) y[i] += expf(x[i] / 2.0f);
  float m = s / m + EPSILON;
  float d = (s - m) > 1.0f ? s : t;
  atomicAdd(y, m);
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
    "value_fewer_bits": "y[i] += __uint_as_float(__float_as_uint(expf(x[i] / 2.0f)) & 0xffff0000u)",
    "loop_starts_late": "int k = 0 + 1;",
    "loop_stops_early": "k < n - 1;",
    "loop_step_doubled": "k += 2 * 32",
    "loop_once": "int k = 0; if ( k < n) {",
    "index_shifted": "x[i * n + k + 1]",
    "address_term_dropped": "x[i * n ])",
    "negation_dropped": "top = INFINITY",
    "constant_nudged": "x[i] / 2.02f",
    "warp_size": "k += 16",
    "statement_deleted": "{ ; }",
    "count_off_by_one": "/ (m - 1)",
    "epsilon_dropped": "m + 0.0f",
    "operands_swapped": "(m - s)",
    "branches_swapped": "? t : s;",
    "atomic_dropped": "*(y) = m;",
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
    assert len(CUDA_RULES) >= 40
    assert {"sync", "masks", "tiles", "accumulators", "types"} <= {
        g for g, _ in CUDA_RULES.values()
    }


def test_rules_of_one_class_are_taken_by_its_name():
    names = cuda_rules_of("loops,sync_dropped")
    assert {CUDA_RULES[n][0] for n in names} == {"loops", "sync"}
    assert {m.rule for m in cuda_mutants(KERNEL, names)} <= set(names)
    few = cuda_mutants(KERNEL, names, per_rule=1, seed=3)
    assert len(few) == len({m.rule for m in few})
    with pytest.raises(ValueError, match="nonsense"):
        cuda_rules_of("nonsense")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.stem)
def test_sources_and_most_of_their_mutants_compile(path):
    source = path.read_text(encoding="utf-8")
    compile_by_nvcc(source, "kernel.cu")
    found = random.Random(0).sample(cuda_mutants(source), 2)
    compiled = 0
    for mutant in found:
        with contextlib.suppress(CompileFailedError):
            compile_by_nvcc(mutant.source, "mutant.cu")
            compiled += 1
    assert compiled >= 1
