"""Candidates in CUDA C++ on a GPU: launched on the judge's buffers, framed, poisoned, replayed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scaled_rows import cuda, verdict

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.verdict import Status, Tier
from hotloop.problems import load_problem_spec
from hotloop.verify import LocalVerifier

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="needs an NVIDIA GPU"),
]

EXAMPLES = Path(__file__).parents[2] / "examples"
STORE = "if (i < n) y[i] = scaled[i] + amount;"


@pytest.fixture(scope="module")
def softmax_judge() -> Iterator[LocalVerifier]:
    judge = LocalVerifier("cuda")
    try:
        judge.load(load_problem_spec(EXAMPLES / "row_softmax.py", device="cuda"))
        yield judge
    finally:
        judge.close()


def store(text: str) -> Candidate:
    """Return the kernels with another last line."""
    return cuda((STORE, text))


def with_shared(dynamic_bytes: int, static_bytes: int) -> Candidate:
    """Return the kernels with the value on its way through both kinds of shared memory."""
    slots = static_bytes // 4
    return cuda(
        (
            '"block": [256],\n     "args": ["scaled"',
            f'"block": [256], "shared_bytes": {dynamic_bytes},\n     "args": ["scaled"',
        ),
        (
            STORE,
            f"""extern __shared__ float part[];
  __shared__ float fixed[{slots}];
  float* last = part + {dynamic_bytes // 4 - 1} - threadIdx.x;
  *last = i < n ? scaled[i] : 0.0f;
  fixed[(threadIdx.x * 29) % {slots}] = amount;
  __syncthreads();
  if (i < n) y[i] = *last + fixed[((threadIdx.x + 1) % 256 * 29) % {slots}];""",
        ),
    )


def test_right_kernels_pass_and_are_timed(gpu_judge: LocalVerifier) -> None:
    found = verdict(gpu_judge, cuda())
    assert found.status is Status.PASSED, found.message
    assert found.deterministic is True
    assert found.performance is not None
    assert 0 < found.performance.latency_ms < 1
    assert found.correctness is not None
    assert found.correctness.timed_calls_checked > 5
    assert [k.name for k in found.resources] == ["multiply", "add"]


def test_final_tier_replays_the_launches(gpu_judge: LocalVerifier) -> None:
    found = gpu_judge.verify(cuda(), Tier.FINAL)
    assert found.status is Status.PASSED, found.message
    assert found.mode == "replay"
    assert found.performance is not None
    assert set(found.performance.speedup_ci) <= set(found.performance.baselines)


@pytest.mark.parametrize(("dynamic_bytes", "static_bytes"), [(100 << 10, 1024), (30720, 30720)])
def test_more_shared_memory_than_the_default_limit(
    gpu_judge: LocalVerifier, dynamic_bytes: int, static_bytes: int
) -> None:
    found = verdict(gpu_judge, with_shared(dynamic_bytes, static_bytes))
    assert found.status is Status.PASSED, found.message
    assert found.resources[1].shared_bytes == dynamic_bytes + static_bytes


@pytest.mark.parametrize(
    "text",
    [
        "if (i < n) y[i] = scaled[i] + 2 * amount;",
        "if (i < n - 100) y[i] = scaled[i] + amount;  // the rest keeps what it held",
    ],
)
def test_wrong_values_are_found(gpu_judge: LocalVerifier, text: str) -> None:
    found = verdict(gpu_judge, store(text))
    assert found.status is Status.INCORRECT_NUMERICAL, found.message
    assert found.performance is None


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (store("if (i < n + 100) y[i] = amount;"), "outside 'y' (1021 x 1000, 1021000 elements)"),
        (store("if (i < n) y[i - 1] = scaled[i] + amount;"), "before its start"),
        (cuda(("row < rows && column < columns", "row < rows")), "outside 'scaled'"),
    ],
    ids=["after the end", "before the start", "scratch"],
)
def test_store_outside_of_a_buffer_is_found(
    gpu_judge: LocalVerifier, kernel: Candidate, text: str
) -> None:
    found = verdict(gpu_judge, kernel)
    assert found.status is Status.RUNTIME_ERROR, found.message
    assert found.evidence is not None
    assert found.evidence.kind == "out_of_bounds"
    assert text in found.message


def test_store_into_an_input_is_found(gpu_judge: LocalVerifier) -> None:
    right = "scaled[i] = x[i] * scale[column];"
    found = verdict(gpu_judge, cuda((right, f"{{ {right} ((float*)x)[i] = 0.0f; }}")))
    assert found.status is Status.INPUT_MODIFIED, found.message


@pytest.mark.parametrize(
    ("kernel", "status", "kind"),
    [
        (store("if (i < n) y[i + (1LL << 40)] = amount;"), Status.RUNTIME_ERROR, "cuda_error"),
        (store("while (atomicAdd((int*)y, 2) != 1) {}"), Status.TIMEOUT, "timeout_gpu"),
        (
            cuda(('"scaled": {"shape": ["ROWS", ', '"scaled": {"shape": [1048576, "ROWS", ')),
            Status.RUNTIME_ERROR,
            "oom_gpu",
        ),
    ],
    ids=["illegal address", "never ends", "too much memory"],
)
def test_fault_is_the_candidates_alone(
    gpu_judge: LocalVerifier, kernel: Candidate, status: Status, kind: str
) -> None:
    found = verdict(gpu_judge, kernel)
    assert found.status is status, found.message
    assert found.evidence is not None
    assert found.evidence.kind == kind
    assert verdict(gpu_judge, cuda()).status is Status.PASSED


def test_readable_example_passes(softmax_judge: LocalVerifier) -> None:
    text = (EXAMPLES / "cuda" / "row_softmax.cu").read_text()
    source = SourceFile(path="kernel.cu", text=text)
    kernel = Candidate(language="cuda", sources=(source,), entry="kernel.cu")
    found = softmax_judge.verify(kernel, Tier.FINAL)
    assert found.status is Status.PASSED, found.message
    assert found.mode == "replay"
    assert found.performance is not None
    assert found.performance.speedup["eager"] > 0.5
