"""The final tier's clocks on a GPU: honest kernels pass all of them, hidden time is never gained.

Covered: the A/A control, both clocks beside CUPTI, the physics floor, persisting L2, work on a side
stream, a clock that lies, kernels on the legacy stream, captures that fail, baselines with gaps.
"""

from __future__ import annotations

from collections.abc import Iterator
from ctypes import c_size_t
from pathlib import Path

import pytest
import scaled_rows
import torch
from gpu_attacks import BURNS, BURNT_MS, HIDDEN, LEFT_WORK, honest, module

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.verdict import Status, Tier, Verdict
from hotloop.verify import LocalVerifier
from hotloop.worker import cudriver as cu
from hotloop.worker.baseline_graphs import without_gaps
from hotloop.worker.clock import Flusher
from hotloop.worker.cross_check import read_cross
from hotloop.worker.cross_clock import cross_times
from hotloop.worker.graph_capture import captured
from hotloop.worker.least_time import least_time
from hotloop.worker.persisting_l2 import PersistingL2, persisting_l2, set_aside_bytes
from hotloop.worker.physics_floor import is_impossible
from hotloop.worker.session import Session
from hotloop.worker.timed import make_clock_once
from hotloop.worker.timing_rules import SHORT_MS, understated_by

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="needs an NVIDIA GPU"),
]
MIB = 1 << 20
LIES = """
def held(module, name):
    return getattr(module, name)

CLOCKS = vars(held(sys, "modules")["hotloop.worker.cl" + "ock"])
REAL = vars(CLOCKS["CuptiClock"])["measure"]

def shorter(self, call):
    result, span = REAL(self, call)
    return result, CLOCKS["Span"](span.elapsed_ms / 1000, span.kernels, span.timer)

CLOCKS["CuptiClock"].measure = shorter
"""
LAUNCH = "        scale_kernel[grid](x, self.scale, y, x.numel(), x.shape[1], 256)\n"
LEGACY_STREAM = """
import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r'''
#include <torch/extension.h>

__global__ void scale_rows(const float* x, const float* scale, float* y, long n, int columns) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * scale[i % columns] + 1.f;
}

torch::Tensor scaled(torch::Tensor x, torch::Tensor scale) {
  auto y = torch::empty_like(x);
  long n = x.numel();
  scale_rows<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), scale.data_ptr<float>(),
                                       y.data_ptr<float>(), n, (int)scale.numel());
  return y;
}
'''
built = load_inline(
    name="scaled",
    cpp_sources="torch::Tensor scaled(torch::Tensor x, torch::Tensor scale);",
    cuda_sources=SOURCE,
    functions=["scaled"],
)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.empty(1000))

    def forward(self, x):
        return built.scaled(x, self.scale)
"""
LIAR = module((LAUNCH, f"        float(x.sum())\n{LAUNCH}"), above=f"{HIDDEN}\n{LIES}")


def final(judge: LocalVerifier, kernel: Candidate) -> Verdict:
    return judge.verify(kernel, Tier.FINAL)


@pytest.fixture(scope="module")
def honest_final(attacked_judge: LocalVerifier) -> Verdict:
    return final(attacked_judge, honest())


def test_an_honest_kernel_passes_with_every_check_on(honest_final: Verdict) -> None:
    assert honest_final.status is Status.PASSED, honest_final.message
    assert honest_final.mode == "replay"
    found = honest_final.performance
    assert found is not None
    checks = found.timing_checks
    assert "doubts" not in checks, checks
    assert checks["control"]["holds"], checks["control"]
    assert abs(checks["control"]["ratio"] - 1.0) <= checks["control"]["limit_frac"]
    assert found.latency_ms < SHORT_MS
    assert checks["clocks"]["graph_slope_ms"] is not None
    assert checks["clocks"]["blocked_stream_ms"] is not None
    # One clock alone may have been disturbed: a claim falls where both saw more (decision 009).
    assert set(checks["clocks"]["found"].values()) != {"claim_shorter"}, checks["clocks"]
    assert checks["floor"]["ms"] < found.latency_ms
    assert found.speedup_ci


@pytest.mark.parametrize("name", LEFT_WORK)
def test_work_left_behind_does_not_pass_the_final_tier(
    attacked_judge: LocalVerifier, name: str
) -> None:
    assert final(attacked_judge, LEFT_WORK[name]).status is not Status.PASSED


def test_time_on_a_side_stream_counts(attacked_judge: LocalVerifier) -> None:
    found = final(attacked_judge, BURNS)
    if found.status is Status.PASSED:
        assert found.performance is not None
        assert found.performance.latency_ms > BURNT_MS / 4


@pytest.mark.parametrize("tier", list(Tier))
def test_a_clock_that_lies_gains_nothing(
    attacked_judge: LocalVerifier, honest_final: Verdict, tier: Tier
) -> None:
    found = attacked_judge.verify(LIAR, tier)
    assert honest_final.performance is not None
    if found.status is Status.PASSED:
        assert found.performance is not None
        assert found.performance.latency_ms > honest_final.performance.latency_ms / 2


@pytest.mark.slow  # torch's headers take a minute to compile
@pytest.mark.parametrize("tier", list(Tier))
def test_kernels_launched_on_the_legacy_stream_are_judged_by_what_they_compute(
    attacked_judge: LocalVerifier, tier: Tier
) -> None:
    source = SourceFile(path="kernel.py", text=LEGACY_STREAM)
    kernel = Candidate(language="cuda", sources=(source,), entry="kernel.py")
    found = attacked_judge.verify(kernel, tier)
    assert found.status is Status.PASSED, found.message
    if tier is Tier.FINAL:
        assert found.mode == "host_path"


def test_a_capture_that_fails_leaves_the_stream_that_it_found() -> None:
    values = torch.ones(1 << 10, device="cuda")
    before = torch.cuda.current_stream()
    assert captured(lambda: float(values.sum())) is None
    assert torch.cuda.current_stream() == before
    graph = captured(lambda: values.add_(1.0))
    assert torch.cuda.current_stream() == before
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(values, torch.full_like(values, 2.0))


def test_a_paused_clock_goes_on_with_the_next_call() -> None:
    values, clock = torch.ones(1 << 20, device="cuda"), make_clock_once()
    before = clock.measure(lambda: values.add_(1.0))[1]
    clock.pause()
    for _ in range(100):
        values.add_(1.0)
    torch.cuda.synchronize()
    after = clock.measure(lambda: values.add_(1.0))[1]
    assert len(before.kernels) == 1
    assert after.kernels == before.kernels
    assert after.busy_ms == after.elapsed_ms
    assert after.elapsed_ms < 3 * before.elapsed_ms


def test_short_kernels_of_a_baseline_are_timed_without_the_gaps_between_them() -> None:
    values, clock = torch.ones(1 << 10, device="cuda"), make_clock_once()
    wide = torch.ones(1 << 26, device="cuda")

    def many() -> None:
        for _ in range(8):
            values.mul_(1.0)

    calls = {"many": many, "one": lambda: wide.mul_(1.0)}
    for call in calls.values():
        call()
    chosen = without_gaps(calls, lambda call: clock.measure(call)[1], captured)
    assert set(chosen.found) == {"many"}
    found = chosen.found["many"]
    assert found["graph_ms"] is not None
    assert found["span_ms"] is not None
    assert found["graph_ms"] < found["span_ms"]
    assert chosen.calls["one"] is calls["one"]
    assert len(clock.measure(chosen.calls["many"])[1].kernels) == 8
    assert chosen.doubts == []


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    path = scaled_rows.write_problem(tmp_path_factory.mktemp("floor"))
    made = Session(scaled_rows.problem(path, "cuda", rows=4096, columns=8192), "cuda",
                   isolation="T0")  # fmt: skip
    yield made
    made.close()


def test_what_a_gpu_cannot_do_is_seen_and_what_eager_does_is_not(session: Session) -> None:
    assert session.timed is not None
    eager_ms = session.baselines_ms["eager"]
    honest_floor = least_time(session.timed, eager_ms, warm=False)
    assert not is_impossible(eager_ms, honest_floor.ms)
    n_bytes = 4096 * 8192 * 4
    suspect_ms = n_bytes / 10e9  # as if DRAM gave 10 TB/s
    floor = least_time(session.timed, suspect_ms, warm=False)
    assert floor.of == "compulsory bytes"
    assert is_impossible(suspect_ms, floor.ms)


@pytest.mark.parametrize("elements", [1 << 16, 1 << 19, 1 << 20, 1 << 22])
def test_three_clocks_agree_on_an_honest_kernel_and_expose_a_third_of_its_time(
    elements: int,
) -> None:
    sets = [torch.rand(2, elements, device="cuda") for _ in range(16)]
    outputs = [torch.empty(elements, device="cuda") for _ in sets]
    clock = make_clock_once()

    def call(index: int) -> None:
        torch.add(sets[index][0], sets[index][1], out=outputs[index])

    call(0)
    samples = sorted(clock.measure(lambda: call(1))[1].elapsed_ms for _ in range(31))
    claimed_ms = samples[15]
    reading = read_cross(cross_times(clock, call, len(sets), 1))
    assert understated_by(claimed_ms, reading.own()) is None, (claimed_ms, reading)
    for index, output in enumerate(outputs):
        assert torch.equal(output, sets[index][0] + sets[index][1])
    if elements == 1 << 22:  # beyond the slack of a launch's own time
        assert understated_by(claimed_ms / 3, reading.own()) is not None, (claimed_ms, reading)


def test_a_flush_takes_back_what_was_set_aside_in_the_cache() -> None:
    flusher = Flusher()
    cu.call("cuCtxSetLimit", 6, c_size_t(4 * MIB))
    assert set_aside_bytes() > 0
    assert persisting_l2() is PersistingL2.CONTROLLED
    cu.call("cuCtxSetLimit", 6, c_size_t(4 * MIB))  # trying it out took the first back
    flusher.flush()
    assert set_aside_bytes() == 0
