"""What becomes of NaN and infinity among the inputs: told, with no say in the verdict."""

import math

import pytest
import torch
from problem_files import forward
from scaled_rows import candidate, spoilt

from hotloop.core.problem import Problem, ProblemKind
from hotloop.core.record import from_json, to_json
from hotloop.core.verdict import Correctness, NonfiniteInputs, Status, Tier
from hotloop.report.verdict_words import nonfinite_words
from hotloop.verify import LocalVerifier
from hotloop.worker.nonfinite_inputs import compared, spoil
from hotloop.worker.reference import build_reference

NAN, INF = math.nan, math.inf


def told(*tried):
    return nonfinite_words(Correctness(cases=(), deterministic=None, nonfinite_inputs=tried))


@pytest.mark.parametrize(
    ("expected", "got", "counts"),
    [
        ([1.0, NAN, INF, -INF], [2.0, NAN, INF, -INF], (3, 0, 0, 0)),
        ([1.0, NAN, INF], [1.0, 0.0, INF], (2, 1, 0, 0)),
        ([1.0, NAN, 2.0], [NAN, NAN, INF], (1, 0, 2, 0)),
        ([INF, NAN, -INF], [-INF, INF, NAN], (3, 0, 0, 3)),
        ([1.0, 2.0], [3.0, 4.0], (0, 0, 0, 0)),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_elements_are_compared_by_what_they_are(expected, got, counts, dtype):
    whole = torch.tensor([1, 2])
    pair = [torch.tensor(values, dtype=dtype) for values in (expected, got)]
    found = compared("nan", [pair[0], whole], [pair[1], whole + 1])
    assert (found.expected, found.lost, found.spread, found.changed) == counts
    assert found.is_kept == (not any(counts[1:]))


def test_one_element_of_each_floating_point_input_is_changed():
    reference = build_reference(
        forward("x + y[:, None] + z", "torch.randn(6, 5)", "torch.rand(6)", "torch.arange(5)")
    )
    draw = reference.draw(3, "shipped")
    before = [v.clone() for v in draw.inputs]
    assert spoil(draw, NAN, 7)
    assert [int(v.isnan().sum()) for v in draw.inputs[:2]] == [1, 1]
    assert torch.equal(draw.inputs[2], before[2])
    same = ~draw.inputs[0].isnan()
    assert torch.equal(draw.inputs[0][same], before[0][same])
    places = set()
    for seed in range(20):
        again = reference.draw(3, "shipped")
        spoil(again, INF, seed)
        places.add(int(again.inputs[0].isinf().flatten().nonzero()))
    assert len(places) > 5


def test_without_a_floating_point_input_there_is_nothing_to_tell():
    reference = build_reference(
        forward("self.e(x)", "torch.arange(7)", init="self.e = torch.nn.Embedding(9, 4)")
    )
    assert not spoil(reference.draw(3, "shipped"), NAN, 0)


def test_words():
    kept = [NonfiniteInputs(value=v, expected=4) for v in ("nan", "inf")]
    assert told() == []
    assert told(*kept) == [
        "a NaN and infinity among the inputs: comes out as PyTorch's (not asked for)"
    ]
    lost = NonfiniteInputs(value="nan", expected=4, lost=3, spread=2, changed=1)
    assert told(lost, kept[1]) == [
        "a NaN among the inputs: 3 of 4 elements that it reaches in PyTorch are finite, 2 others "
        "are not finite, 1 are another of NaN, inf, -inf (not asked for)",
        "infinity among the inputs: comes out as PyTorch's (not asked for)",
    ]
    assert told(NonfiniteInputs(value="inf", status=Status.TIMEOUT)) == [
        "infinity among the inputs: TIMEOUT (not asked for)"
    ]


SOURCE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x.amax(1)
def get_inputs():
    return [torch.randn(24, 48)]
"""
KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def top_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + i, mask=i < columns, other=-float("inf"))
    top = tl.max(x, 0)
    nan = tl.max((x != x).to(tl.int32), 0)
    tl.store(y_ptr + row, tl.where(nan > 0, float("nan"), top))

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device)
        top_kernel[(x.shape[0],)](x, y, x.shape[1], 64)
        return y
"""
DROPS = ('tl.where(nan > 0, float("nan"), top)', "tl.where(nan > 0, 0.0, top)")
FAILS = ("tl.store(y_ptr + row, ", "tl.store(y_ptr + row + tl.where(nan > 0, 100000, 0), ")


@pytest.fixture(scope="module")
def judge():
    verifier = LocalVerifier("cpu", call_timeout_s=30.0)
    try:
        verifier.load(Problem(name="m", kind=ProblemKind.KERNELBENCH, source=SOURCE))
        yield verifier
    finally:
        verifier.close()


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_a_kernel_that_drops_a_nan_passes_and_is_told(judge):
    def tried(*changes):
        verdict = judge.verify(candidate(spoilt(KERNEL, *changes), "kernel.py"), Tier.FINAL)
        assert verdict.status is Status.PASSED, verdict.message
        again = from_json(type(verdict), to_json(verdict))
        assert again.correctness.nonfinite_inputs == verdict.correctness.nonfinite_inputs
        return {trial.value: trial for trial in verdict.correctness.nonfinite_inputs}

    honest = tried()
    assert set(honest) == {"nan", "inf"}
    assert all(trial.is_kept and trial.expected == 1 for trial in honest.values())
    drops = tried(DROPS)
    assert (drops["nan"].expected, drops["nan"].lost) == (1, 1)
    assert drops["inf"].is_kept


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_the_fast_tier_does_not_try_it(judge):
    verdict = judge.verify(candidate(KERNEL, "kernel.py"), Tier.FAST)
    assert verdict.status is Status.PASSED
    assert verdict.correctness.nonfinite_inputs == ()


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_a_kernel_that_fails_on_a_nan_passes_and_is_told(judge):
    verdict = judge.verify(candidate(spoilt(KERNEL, FAILS), "kernel.py"), Tier.FINAL)
    assert verdict.status is Status.PASSED, verdict.message
    (only,) = verdict.correctness.nonfinite_inputs
    assert (only.value, only.status) == ("nan", Status.RUNTIME_ERROR)
