"""No fault that shrinks every element is taken for TF32 that is cut."""

import math
from functools import cache

import pytest
import torch
from problem_files import attention, forward
from tf32_forms import FORMS, bf16, build, cut, fails_plainly, known, one

from hotloop.problems.precision import with_precision
from hotloop.worker.load import load_problem
from hotloop.worker.reference import build_reference
from hotloop.worker.sequential import round_to_tf32
from hotloop.worker.tf32_cut import cut_outputs
from hotloop.worker.timed import TimedInputs

gelu, relu = torch.nn.functional.gelu, torch.relu
SCALED = "torch.nn.functional.gelu(x @ y) * 1.7"
PROBLEMS = {
    "scaled": forward(SCALED, "torch.randn(24, 1024)", "torch.randn(1024, 32)"),
    "mean": forward(
        "torch.relu(x @ y).mean(dim=1)", "torch.randn(32, 64)", "torch.randn(64, 2048)"
    ),
    "scalar": forward("(x @ y).square().mean()", "torch.randn(2048, 64)", "torch.randn(64, 48)"),
}
RIGHT = {
    "scaled": lambda p: gelu(p) * 1.7,
    "mean": lambda p: relu(p).mean(1),
    "scalar": lambda p: p.square().mean(),
}
FAULTS = {
    "scaled by 1.699": ("scaled", lambda p: gelu(p) * 1.699),
    "scaled by 1.6992": ("scaled", lambda p: gelu(p) * 1.6992),
    "scaled by 1.6995": ("scaled", lambda p: gelu(p) * 1.6995),
    "over N + 1": ("mean", lambda p: relu(p).sum(1) / (p.shape[1] + 1)),
    "a column dropped": ("mean", lambda p: relu(p)[:, :-1].sum(1) / p.shape[1]),
    "a row dropped": ("scalar", lambda p: p[:-1].square().sum() / p.numel()),
}
WAYS = [(cut, cut), (cut, round_to_tf32), (round_to_tf32, cut)]
NAMES = ["both", "first", "second"]


@cache
def case_of(name, profile="positive_mean", seed=3):
    return known(build(PROBLEMS[name]), profile, seed)


def operands(case, how=(round_to_tf32, round_to_tf32)):
    return (rounding(x) for rounding, x in zip(how, case.draw.inputs, strict=True))


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_off_everywhere_alike_is_refused(fault):
    name, finish = FAULTS[fault]
    for seed in (3, 4):
        case = case_of(name, seed=seed)
        product = one(*operands(case))
        assert case.is_right([RIGHT[name](product)])
        assert not case.is_right([finish(product)]), seed


@pytest.mark.parametrize("how", WAYS, ids=NAMES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_operands_cut_both_or_one_pass(name, how):
    case = case_of(name)
    for form in FORMS:
        output = RIGHT[name](form(*operands(case, how)))
        assert case.is_right([output])
        assert fails_plainly(case, output), "the limits alone refuse it"


@pytest.mark.slow
@pytest.mark.parametrize("how", WAYS, ids=NAMES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_operands_cut_both_or_one_pass_on_every_profile(name, how):
    reference = build(PROBLEMS[name])
    for profile in reference.profiles + reference.final_profiles:
        for seed in range(3):
            case = known(reference, profile, 100 + seed)
            for form in FORMS:
                output = RIGHT[name](form(*operands(case, how)))
                assert case.is_right([output]), (profile, seed, form)


def test_one_operand_in_bfloat16_is_refused():
    case = case_of("scaled")
    for how in ((cut, bf16), (bf16, cut), (round_to_tf32, bf16), (bf16, bf16)):
        assert not case.is_right([RIGHT["scaled"](one(*operands(case, how)))])


@pytest.mark.slow
def test_attention_that_is_scaled_is_refused():
    case = known(build(attention("dtype = 'float32'\n")), "positive_mean")
    for how in WAYS:
        for factor, is_right in ((1, True), (0.9995, False)):
            q, k, v = case.draw.inputs
            weights = how[0](q) @ how[1](k).mT * q.shape[-1] ** -0.5
            output = how[0](weights.softmax(-1)) @ how[1](v)
            assert case.is_right([output * factor]) == is_right


def test_outputs_are_judged_each_by_its_own_product():
    body = "(x @ y, (x @ y).relu() + 1)"
    case = known(
        build(forward(body, "torch.randn(40, 96)", "torch.randn(96, 48)")), "positive_mean"
    )
    first, second = (one(*operands(case, how)) for how in WAYS[:2])
    assert case.is_right([first, second.relu() + 1])
    assert case.is_right([second, first.relu() + 1])
    assert not case.is_right([first * 0.9995, second.relu() + 1])
    assert not case.is_right([first, second.relu()])


def counting(runs):
    """Return a case that adds to `runs` whenever the reference runs.

    Cutting makes the values of one operand nearly twice as much smaller as those of the other.
    """
    inputs = "1 + 0.1 * torch.rand(40, 512)", "1.8 + 0.1 * torch.rand(512, 48)"
    source = forward("RUNS.append(1) or x @ y", *inputs)
    loaded = load_problem(with_precision(source.problem, "tf32"), device="cpu")
    loaded.namespace["RUNS"] = runs
    return known(build_reference(loaded), "shipped")


def test_the_reference_is_run_as_often_as_it_takes():
    runs = []
    case = counting(runs)
    for how, times in (((round_to_tf32,) * 2, 0), *zip(WAYS, (1, 2, 3), strict=True)):
        output = one(*operands(case, how))
        runs.clear()
        assert case.is_right([output])
        assert len(runs) == times
    runs.clear()
    assert not case.is_right([output * 0.99])
    assert len(runs) == len(WAYS)


def test_nan_alone_runs_nothing_more():
    runs = []
    case = counting(runs)
    (trusted,) = case.reference.eager(case.draw)
    inputs = TimedInputs(case.reference, case.draw, case.case.bounds, lambda: trusted, 0.0)
    broken = one(*operands(case, WAYS[0]))
    runs.clear()
    assert inputs.is_right(0, broken, trusted)
    assert runs
    for value in (math.nan, math.inf):
        broken[0, 0] = value
        runs.clear()
        assert not inputs.is_right(0, broken, trusted)
        assert not case.is_right([broken])
        assert not runs


def test_cut_outputs_are_of_the_way_asked_for():
    case = case_of("scaled")
    for how in WAYS:
        (made,) = cut_outputs(case.reference, case.draw, how)
        assert torch.allclose(made, RIGHT["scaled"](one(*operands(case, how))), rtol=1e-5)
