"""TF32 cut instead of rounded passes where TF32 is allowed, there only, and bfloat16 does not."""

import math
from functools import cache

import pytest
import torch
from problem_files import attention, forward
from tf32_forms import FORMS, as_is, bf16, bf16_cut, build, cut, fails_plainly, known, one

from hotloop.problems.precision import with_precision
from hotloop.worker.audit_subject import Subject
from hotloop.worker.compare import Rigour
from hotloop.worker.correctness import case_result
from hotloop.worker.discrimination import rounded_to
from hotloop.worker.load import load_problem
from hotloop.worker.precision import PRECISIONS, applied
from hotloop.worker.reference import build_reference
from hotloop.worker.sequential import round_to_tf32
from hotloop.worker.tf32_cut import (
    CutOperands,
    cut_outputs,
    cut_to_tf32,
    less_cut,
    may_be_cut,
    measured,
)
from hotloop.worker.timed import TimedInputs

LAYERS = "[m for _ in range(4) for m in (torch.nn.Linear(64, 64), torch.nn.ReLU())]"
PROBLEMS = {
    "product": forward("x @ y", "torch.randn(40, 96)", "torch.randn(96, 48)"),
    "linear": forward("self.n(x)", "torch.rand(48, 96)", init="self.n = torch.nn.Linear(96, 32)"),
    "layers": forward(
        "self.n(x)", "torch.randn(48, 64)", init=f"self.n = torch.nn.Sequential(*{LAYERS})"
    ),
    "attention": attention("dtype = 'float32'\n"),
}


@cache
def reference_of(name, policy="tf32"):
    return build(PROBLEMS[name], policy)


def by_hand(name, case, rounding, product=one):
    """Return what a kernel gives that takes its operands like this."""
    values = case.draw.inputs
    if name == "product":
        return product(rounding(values[0]), rounding(values[1]))
    if name == "attention":
        q, k, v = values
        weights = product(rounding(q), rounding(k).mT.contiguous()) * q.shape[-1] ** -0.5
        return product(rounding(weights.softmax(-1)), rounding(v))
    (x,), state = values, case.draw.state
    for weight, bias in zip(*[iter(state.values())] * 2, strict=True):
        x = product(rounding(x), rounding(weight).T) + bias
        x = x.relu() if name == "layers" else x
    return x


def passes(name, case, rounding, product=one):
    return case.judge(0, by_hand(name, case, rounding, product)).passed


@pytest.mark.parametrize(
    "name", ["product", "linear", "layers", pytest.param("attention", marks=pytest.mark.slow)]
)
def test_cut_operands_pass_and_bfloat16_does_not(name):
    for profile in ("normal", "positive_mean"):
        case = known(reference_of(name), profile)
        assert all(passes(name, case, cut, form) for form in FORMS), profile
        assert passes(name, case, round_to_tf32)
        assert passes(name, case, as_is)
        assert not passes(name, case, bf16), profile
        assert not passes(name, case, bf16_cut), profile
        assert fails_plainly(case, by_hand(name, case, cut)), "the limits alone refuse it"


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_cut_operands_pass_on_every_profile_over_ten_seeds(name):
    reference = reference_of(name)
    for profile in reference.profiles + reference.final_profiles:
        for seed in range(10):
            case = known(reference, profile, 100 + seed)
            assert all(passes(name, case, cut, form) for form in FORMS), (profile, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["product", "linear", "layers"])
def test_bfloat16_is_refused_on_every_profile_of_many_values(name):
    """Whole numbers are exact in it, and products of constant rows share one error."""
    reference = reference_of(name)
    for profile in reference.profiles + reference.final_profiles:
        for seed in range(4):
            case = known(reference, profile, 100 + seed)
            is_full = case.case.bounds[0].rigour is Rigour.FULL
            if is_full and profile not in ("integers", "constant_rows"):
                assert not passes(name, case, bf16), (profile, seed)
                assert not passes(name, case, bf16_cut), (profile, seed)


@pytest.mark.parametrize("policy", ["as_shipped", "strict"])
def test_where_tf32_is_not_allowed_it_may_not_be_cut(policy):
    reference = reference_of("product", policy)
    for profile in reference.profiles:
        if profile != "integers":
            case = known(reference, profile)
            assert not passes("product", case, cut)
            assert passes("product", case, as_is)
    assert not may_be_cut(reference)
    assert cut_outputs(reference, reference.draw(3, "normal")) is None


def test_faults_beside_the_cut_are_seen():
    case = known(reference_of("product"), "positive_mean")
    right = by_hand("product", case, cut)
    assert case.is_right([right])
    lost, wrong = right.clone(), right.clone()
    lost[7] = 0
    wrong[3, 5] *= 1.001
    late = right.roll(1, 0)
    broken = right.clone()
    broken[0, 0] = math.nan
    for output in (lost, wrong, late, broken):
        assert not case.is_right([output])


def test_what_cutting_does_is_taken_off_whole():
    expected = torch.randn(64, generator=torch.Generator().manual_seed(1)).double()
    made = expected.float()
    shift = 0.01 * made.abs()
    for times in (-1, 0, 0.5, 1, 2):
        less = less_cut(made + times * shift, expected, made + shift)
        assert torch.allclose(less, made + (times - 1) * shift, atol=1e-6), times
    assert less_cut(made.half(), expected, made).dtype == torch.float32
    assert less_cut(made.double(), expected, made).dtype == torch.float64


def test_nan_and_infinity_stay_where_they_are():
    expected = torch.tensor([1.0, math.inf, -math.inf, math.nan]).double()
    made = expected.float()
    assert torch.allclose(less_cut(made, expected, made).double(), expected, equal_nan=True)
    broken = torch.tensor([math.nan, 1.0, 1.0, 1.0])
    less = less_cut(broken, expected, made)
    assert torch.allclose(less, broken, equal_nan=True), "nothing hides behind what is not finite"


def test_what_is_cut_goes_toward_zero():
    x = torch.randn(1000, generator=torch.Generator().manual_seed(1))
    got = cut_to_tf32(x)
    assert got.equal(cut(x))
    assert bool((got.abs() <= x.abs()).all())
    assert bool(((x - got).abs() < 2.0**-10 * x.abs()).all())
    odd = torch.tensor([math.inf, -math.inf, math.nan])
    odd.view(torch.int32)[2] = 0x7F800001  # a NaN that would be an infinity
    assert cut_to_tf32(odd)[:2].equal(odd[:2])
    assert bool(cut_to_tf32(odd)[2].isnan())


def test_what_goes_into_the_accumulator_is_not_cut():
    bias = torch.full((5,), 1 + 2.0**-20)
    a, b = torch.full((3, 4), 1 + 2.0**-20), torch.ones(4, 5)
    with CutOperands(lambda func, run: True) as mode:
        added = torch.addmm(bias, a, b)
        convolved = torch.nn.functional.conv1d(a[None, :, :], b.T[:, :3, None], bias)
    assert mode.cut == 2
    assert bool((added == 5 + 2.0**-20).all())
    assert bool((convolved == 4 + 2.0**-20).all())
    with CutOperands(lambda func, run: True) as mode:
        assert torch.equal(a.double() @ b.double(), (a.double() * 4)[:, :1].expand(3, 5))
    assert mode.cut == 0, "other types than float32 are not"


@pytest.mark.parametrize("low", [-1.0, 1.0])
def test_whether_an_operation_rounds_is_measured(low):
    generator = torch.Generator().manual_seed(1)
    a, b = (torch.empty(n).uniform_(low, 2, generator=generator) for n in ((8, 8192), (8192, 8)))

    def library(rounding):
        def run(how):
            allowed = torch.backends.cuda.matmul.allow_tf32
            return one(*((rounding if allowed else as_is)(how(t)) for t in (a, b)))

        return run

    with applied(PRECISIONS["tf32"]):
        assert measured(None, library(round_to_tf32))
        assert measured(None, library(lambda x: rounded_to(x, 10))), "ties to even"
        assert not measured(None, library(as_is)), "it does not although it may"
    with applied(PRECISIONS["strict"]):
        assert not measured(None, library(round_to_tf32))


def test_a_convolution_may_be_cut_where_it_rounds_only():
    body, init = "self.n(x)", "self.n = torch.nn.Conv1d(8, 8, 3)"
    problem = with_precision(forward(body, "torch.rand(2, 8, 40)", init=init).problem, "tf32")
    reference = build_reference(load_problem(problem, device="cpu"))
    draw = reference.draw(3, "normal")
    assert cut_outputs(reference, draw) is None, "that of a CPU does not"
    with CutOperands(lambda func, run: True) as mode:
        (changed,) = reference.eager(draw)
    assert mode.cut == 1
    (x,), (weight, bias) = draw.inputs, draw.state.values()
    expected = torch.nn.functional.conv1d(cut(x), cut(weight), bias)
    assert torch.allclose(changed, expected, rtol=1e-6, atol=1e-6)


def test_the_record_says_that_it_was_cut():
    case = known(reference_of("product"), "positive_mean")
    told = {}
    for name, rounding in (("cut", cut), ("rounded", round_to_tf32), ("bf16", bf16)):
        result = case.judge(0, by_hand("product", case, rounding))
        told[name] = case_result(case.case, 0, case.case.bounds[0], result)
    assert {name: record.rigour for name, record in told.items()} == {
        "cut": Rigour.CUT, "rounded": Rigour.FULL, "bf16": Rigour.FULL,
    }  # fmt: skip
    assert told["cut"].rmse > 10 * told["cut"].eager_rmse, "errors are told as they are"
    assert told["cut"].rule is None
    assert told["bf16"].rule == "bulk"


def test_timed_calls_and_the_audit_judge_alike():
    case = known(reference_of("product"), "positive_mean")
    (trusted,) = case.reference.eager(case.draw)
    inputs = TimedInputs(case.reference, case.draw, case.case.bounds, lambda: trusted, 0.0)
    subject = Subject(case.reference, case.case, case.draw, case.goldens, (trusted,))
    for rounding, is_right in ((cut, True), (round_to_tf32, True), (bf16, False)):
        output = by_hand("product", case, rounding)
        assert inputs.is_right(0, output, trusted) == is_right
        assert subject.passes({0: output}) == is_right


def test_memory_that_is_short_excuses_nothing():
    error = "torch.OutOfMemoryError('CUDA out of memory')"
    body = f"x @ y if not FULL else (_ for _ in ()).throw({error})"
    source = forward(body, "torch.randn(40, 96)", "torch.randn(96, 48)").problem
    loaded = load_problem(with_precision(source, "tf32"), device="cpu")
    loaded.namespace["FULL"] = []
    reference = build_reference(loaded)
    case = known(reference, "normal")
    output = by_hand("product", case, cut)
    assert case.is_right([output])
    loaded.namespace["FULL"].append(1)
    assert not case.is_right([output])
    assert any("does not fit in memory" in note for note in reference.notes)
