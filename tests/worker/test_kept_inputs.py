"""One input of a positive domain costs no other input a value profile.

Each mistake had passed, since the prior or the variance beside it left nothing of the profile.
"""

import pytest
import torch
from problem_files import forward, model
from seeded_verdicts import SEEDS, book_of, built, passed

from hotloop.core.problem import Problem, ProblemKind
from hotloop.worker.kept_inputs import RUNS
from hotloop.worker.reference import build_reference
from hotloop.worker.session import Session
from hotloop.worker.value_profiles import MODEL_PROFILES, names

ROWS, PRIOR = "torch.randn(48, 96)", "torch.rand(96) + 0.1"
PRIORS = ("torch.softmax(x + torch.log(y), -1)", ROWS, PRIOR)
RELU = ("torch.relu(x) / torch.sqrt(y + 1e-5)", "torch.rand(48, 96)", "torch.rand(96)")
DISTANCE = "torch.sqrt(((x - y + 1e-6) ** 2).sum(-1)) / torch.sqrt(z)"
DISTANCES = (DISTANCE, ROWS, ROWS, "torch.rand(48) + 0.1")
PROJECTED = ("self.c(x) / torch.sqrt(y)", "torch.randn(48, 96)", "torch.rand(32) + 0.1")


def softmax(z, top):
    e = torch.exp(z - top)
    return e / e.sum(-1, keepdim=True)


def with_maximum(x, p):
    z = x + torch.log(p)
    return softmax(z, z.amax(-1, keepdim=True))


def weighted(x, p):
    e = torch.exp(x - x.amax(-1, keepdim=True)) * p
    return e / e.sum(-1, keepdim=True)


CASES = {
    "no maximum": (
        "large",
        PRIORS,
        [with_maximum, weighted],
        [lambda x, p: softmax(x + torch.log(p), 0)],
    ),
    "a maximum from 0": (
        "far",
        PRIORS,
        [with_maximum],
        [lambda x, p: softmax(z := x + torch.log(p), z.amax(-1, keepdim=True).clamp(min=0))],
    ),
    "no relu": (
        "normal",
        RELU,
        [
            lambda x, v: x.clamp(min=0) * torch.rsqrt(v + 1e-5),
            lambda x, v: torch.where(x > 0, x / torch.sqrt(v + 1e-5), 0),
        ],
        [lambda x, v: x / torch.sqrt(v + 1e-5)],
    ),
    "no relu on negative values": (
        "negative",
        RELU,
        [lambda x, v: x.clamp(min=0) * torch.rsqrt(v + 1e-5)],
        [lambda x, v: x / torch.sqrt(v + 1e-5)],
    ),
    "no epsilon in a distance": (
        "alike",
        DISTANCES,
        [lambda x, y, z: torch.linalg.vector_norm(x - y + 1e-6, dim=-1) * torch.rsqrt(z)],
        [lambda x, y, z: torch.linalg.vector_norm(x - y, dim=-1) / torch.sqrt(z)],
    ),
    "no relu, at the final tier": (
        "uniform",
        RELU,
        [lambda x, v: x.clamp(min=0) * torch.rsqrt(v + 1e-5)],
        [lambda x, v: x / torch.sqrt(v + 1e-5)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_mistake_is_refused_and_honest_forms_pass_on_every_seed(name):
    profile, problem, honest, wrong = CASES[name]
    reference = built(*problem)
    if profile in reference.final_profiles:
        assert "keep the file's own values" in reference.kept_inputs.keep_at_last(profile)
    book = book_of(reference, profile)
    assert [passed(book, kernel) for kernel in honest] == [len(SEEDS)] * len(honest)
    assert [passed(book, kernel) for kernel in wrong] == [0] * len(wrong)


def test_only_what_has_to_keeps_its_values_and_it_is_told():
    reference = built(*PRIORS)
    assert {"normal", "negative", "large", "far"} <= set(reference.profiles)
    assert reference.reach.kept == dict.fromkeys(("negative", "large", "far"), frozenset({1}))
    assert reference.reach.unsigned_inputs == {"normal": frozenset({1})}
    x, prior = reference.draw(5, "negative").inputs
    assert float(x.min()) < -16
    assert float(prior.min()) >= 0.1
    assert float(prior.max()) <= 1.1
    x, prior = reference.draw(5, "normal").inputs
    assert float(x.min()) < 0 < float(prior.min())
    assert float(prior.max()) > 1.1  # the size of N(0, 1), not the file's own
    told = [note for note in reference.notes if note.startswith("inputs y ")]
    assert any(
        "keep the file's own values in value profiles 'negative', 'large'" in n for n in told
    )
    assert any("have no signs in value profiles 'normal'" in n for n in told)
    assert not any("left out" in note for note in reference.notes)


def test_new_values_in_place_stay_in_the_domain():
    reference = built(*PRIORS)
    draw = reference.draw(5, "negative")
    before = [t.clone() for t in draw.inputs]
    reference.redraw_inputs(draw, 6)
    assert not any(torch.equal(a, b) for a, b in zip(before, draw.inputs, strict=True))
    assert 0.1 <= float(draw.inputs[1].min()) <= float(draw.inputs[1].max()) <= 1.1
    assert float(draw.inputs[0].min()) < -16
    assert torch.isfinite(reference.eager(draw)[0]).all()


def test_a_reference_that_raises_keeps_the_profiles_of_its_other_inputs():
    refuses = "[torch.relu(x) * y][int((y <= 0).any())]"
    reference = built(refuses, ROWS, "torch.rand(96) + 0.1")
    assert {"negative", "large", "far"} <= set(reference.profiles)
    assert reference.reach.kept["negative"] == frozenset({1})


def test_of_two_inputs_with_a_domain_both_are_kept_and_the_third_is_varied():
    body = "torch.relu(x) * torch.log(y) / torch.sqrt(z)"
    reference = built(body, ROWS, PRIOR, "torch.rand(96) + 0.1")
    assert reference.reach.kept["negative"] == frozenset({1, 2})
    assert float(reference.draw(5, "negative").inputs[0].min()) < -16


def test_opposed_scales_stay_opposed():
    reference = build_reference(forward(*PROJECTED, init="self.c = torch.nn.Linear(96, 32)"))
    assert reference.reach.kept["opposed"] == frozenset({1})
    draw = reference.draw(5, "opposed")
    assert float(draw.inputs[0].std()) > 2.0**16
    assert float(draw.inputs[1].max()) <= 1.1


@pytest.mark.parametrize(
    "problem",
    [
        ("torch.log(x)", PRIOR),  # there is no other input
        ("torch.log(x + y)", PRIOR, PRIOR),  # neither bears it by itself
        ("torch.log(x) * torch.log(y)", PRIOR, PRIOR),
    ],
)
def test_where_no_input_bears_it_the_profile_is_left_out_as_before(problem):
    reference = built(*problem)
    assert "negative" not in reference.profiles
    assert reference.reach.kept == {}
    assert any("'negative' left out" in note for note in reference.notes)
    assert reference.kept_inputs.keep_at_last("uniform") is None


def test_nothing_is_tried_where_all_inputs_can_be_varied():
    for body, init in (("torch.relu(x) * y", "pass"), ("x @ y.T", "pass")):
        reference = build_reference(forward(body, ROWS, ROWS, init=init))
        assert reference.kept_inputs.runs == 0
        assert reference.reach.kept == reference.reach.unsigned_inputs == {}


def many(count, *, bears):
    names_ = [f"a{i}" for i in range(count)]
    rows = " + ".join(f"torch.relu({name})" for name in names_[1:])
    return model(
        "class Model(torch.nn.Module):\n"
        f"    def forward(self, {', '.join(names_)}):\n"
        f"        return ({rows}) * torch.log({'a0' if bears else ' * '.join(names_)})\n"
        f"def get_inputs():\n    return [torch.rand(40, 48) + 0.1 for _ in range({count})]\n"
    )


def test_ten_inputs_cost_a_bounded_number_of_runs_and_find_the_same_each_time():
    first, again = (build_reference(many(10, bears=True)) for _ in range(2))
    assert first.reach.kept == again.reach.kept
    assert first.kept_inputs.runs == again.kept_inputs.runs <= 10 + 1 + 6
    assert set(first.reach.kept.values()) == {frozenset({0})}
    hopeless = build_reference(many(12, bears=False))
    assert hopeless.kept_inputs.runs == RUNS
    assert hopeless.reach.kept == {}


@pytest.mark.parametrize("profile", ["normal", "large", "far", "uniform", "constant_rows"])
def test_a_single_number_under_a_root_costs_no_seed_its_case(profile):
    reference = built("torch.relu(x) / torch.sqrt(y)", ROWS, "torch.rand(1) + 0.1")
    if profile in reference.final_profiles:
        assert reference.kept_inputs.keep_at_last(profile) is not None
    book = book_of(reference, profile)
    assert passed(book, lambda x, v: x.clamp(min=0) * torch.rsqrt(v)) == len(SEEDS)


def test_alike_brings_the_others_of_a_shape_near_each_other():
    body = "torch.nn.functional.gaussian_nll_loss(x, y, z, reduction='none')"
    reference = built(body, ROWS, ROWS, "torch.rand(48, 96) + 0.1")
    assert reference.reach.kept["alike"] == frozenset({2})
    x, y, variance = reference.draw(5, "alike").inputs
    assert float((x - y).abs().max()) < 0.1
    assert float((x - variance).abs().max()) > 1


def test_the_final_tier_keeps_what_it_has_to_and_leaves_out_nothing(capsys):
    source = (
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x, y):\n"
        f"        return {RELU[0]}\ndef get_inputs():\n    return [{RELU[1]}, {RELU[2]}]\n"
    )
    problem = Problem(name="m", kind=ProblemKind.KERNELBENCH, source=source)
    session = Session(problem, "cpu", isolation="T0", tracing=False)
    try:
        books = session.fresh_books(session.nominal, {})
        profiles = {case.profile for book in books for case in book}
    finally:
        session.close()
    not_here = {"integers", "parameters", "biased", "opposed", "lowered", "alike"}
    assert profiles == set(names(MODEL_PROFILES)) - not_here
    assert (
        "inputs y keep the file's own values in value profiles 'uniform'" in capsys.readouterr().err
    )
