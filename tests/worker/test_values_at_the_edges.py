"""Rows of 0, positive domains, constant buffers, the end of softplus: refused and passed.

Each mistake had passed every profile, as no value showed it. Honest forms pass on every seed.
"""

import pytest
import torch
from problem_files import forward
from torch.nn import functional as F

from hotloop.worker.cases import CaseBook
from hotloop.worker.compare import gate
from hotloop.worker.reference import build_reference

SEEDS = range(5)
LOG_2 = 0.6931471805599453


def verdicts(reference, profile, kernel, seeds=SEEDS):
    """Return on how many seeds a kernel, a function of state and inputs, passes."""
    book = CaseBook(reference, "nominal")
    for seed in seeds:
        book.add(profile, seed, cache_bytes=1 << 26)
    assert len(book.cases) == len(seeds)
    passed = 0
    for case in book:
        draw, (golden,) = book.materialise(case)
        output = kernel(draw.state, *draw.inputs).contiguous()
        passed += gate(output, golden, case.bounds[0]).passed
    return passed


def squares(x):
    return (x * x).sum(1, keepdim=True)


def mixed_std(x, count):
    centred = x - x.mean(1, keepdim=True)
    return centred / (torch.sqrt(squares(centred) / count) + 1e-2)


def one_pass_std(x, count):
    mean = x.mean(1, keepdim=True)
    variance = (x * x).sum(1, keepdim=True) / count - mean * mean
    return (x - mean) / (torch.sqrt(variance) + 1e-2)


STD = "(x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True, unbiased=False) + 1e-2)"
CASES = {
    "a norm of 0": (
        "negative",
        ("torch.nn.functional.normalize(x, dim=1)", "torch.rand(66, 96)"),
        [
            lambda s, x: x / squares(x).sqrt().clamp(min=1e-12),
            lambda s, x: x * torch.rsqrt(squares(x).clamp(min=1e-24)),
        ],
        [lambda s, x: x * torch.rsqrt(squares(x)), lambda s, x: x / squares(x).sqrt()],
    ),
    "softplus that ends at 10": (
        "negative",
        ("torch.nn.functional.softplus(x)", "torch.rand(66, 96)"),
        [
            lambda s, x: torch.where(x > 20, x, torch.log1p(torch.exp(x))),
            lambda s, x: x.clamp(min=0) + torch.log1p(torch.exp(-x.abs())),
        ],
        [lambda s, x: torch.where(x > 10, x, torch.log1p(torch.exp(x)))],
    ),
    "a logarithm below 2.5": (
        "normal",
        ("torch.log(x)", "torch.rand(66, 96)"),
        [lambda s, x: torch.log2(x) * LOG_2],
        [
            lambda s, x: torch.where(x > 2.5, 0, torch.log(x)),
            lambda s, x: torch.log(x.clamp(min=1e-3)),
        ],
    ),
    "a power up to 2.5": (
        "normal",
        ("torch.pow(x, 2.5)", "torch.rand(66, 96)"),
        [lambda s, x: torch.exp(2.5 * torch.log(x)), lambda s, x: x * x * x.sqrt()],
        [lambda s, x: torch.pow(x.clamp(max=2.5), 2.5)],
    ),
    "a root below 4": (
        "normal",
        ("torch.sqrt(x)", "torch.rand(66, 96)"),
        [lambda s, x: x * torch.rsqrt(x.clamp(min=1e-38))],
        [lambda s, x: torch.sqrt(x.clamp(max=2))],
    ),
    "buffers left out": (
        "normal",
        (
            "torch.relu((x - self.m) / self.d)",
            "torch.randn(66, 96)",
            'self.register_buffer("m", torch.zeros(96)); self.register_buffer("d", torch.ones(96))',
        ),
        [lambda s, x: torch.relu((x - s["m"]) * (1 / s["d"]))],
        [lambda s, x: torch.relu(x), lambda s, x: torch.relu(x - s["m"])],
    ),
    "a variance below 0": (
        "constant_rows",
        (STD, "torch.rand(66, 96)"),
        [lambda s, x: mixed_std(x, 96)],
        [lambda s, x: one_pass_std(x, 96)],
    ),
    "a maximum from -65504": (
        "far",
        ("x.amax(1)", "torch.rand(66, 96)"),
        [lambda s, x: x.amax(1)],
        [lambda s, x: x.amax(1).clamp(min=-65504), lambda s, x: x.amax(1).clamp(min=0)],
    ),
}


def build(body, x, init="pass"):
    return build_reference(forward(body, x, init=init))


@pytest.mark.parametrize("name", CASES)
def test_the_mistake_is_refused_and_honest_forms_pass_on_every_seed(name):
    profile, problem, honest, wrong = CASES[name]
    reference = build(*problem)
    assert profile in (*reference.profiles, *reference.final_profiles)
    assert [verdicts(reference, profile, kernel) for kernel in honest] == [len(SEEDS)] * len(honest)
    assert [verdicts(reference, profile, kernel) for kernel in wrong] == [0] * len(wrong)


def softmax_from(x, top):
    e = torch.exp(x - top)
    return e / e.sum(1, keepdim=True)


def test_a_softmax_whose_maximum_begins_at_0_is_refused():
    reference = build("torch.softmax(x, 1)", "torch.rand(66, 96)")
    assert verdicts(reference, "far", lambda s, x: softmax_from(x, x.amax(1, keepdim=True))) == len(
        SEEDS
    )
    begins = verdicts(
        reference, "far", lambda s, x: softmax_from(x, x.amax(1, keepdim=True).clamp(min=0))
    )
    assert begins == 0


def test_values_go_no_further_than_the_reference_bears():
    plain = build("x / x.abs().mean(1, keepdim=True)", "torch.rand(66, 96)")
    assert "negative" in plain.profiles
    assert 0.0 not in {f for group in plain.reach.factors for f in group}
    signed = build("x * 2", "torch.rand(66, 96)")
    assert signed.reach.unsigned == set()
    assert float(signed.draw(1, "normal").inputs[0].min()) < 0
    assert not signed.reach.sides.below
    assert abs(float(signed.draw(1, "far").inputs[0][-8:].mean())) < 2.0**15


def test_a_buffer_that_the_reference_needs_is_kept():
    init = (
        'self.register_buffer("low", torch.zeros(96)); self.w = torch.nn.Parameter(torch.ones(1))'
    )
    reference = build(
        "torch.sqrt((x - self.low).clamp(min=0) + self.low) * self.w", "torch.rand(66, 96)", init
    )
    assert "normal" in reference.profiles
    state = reference.draw(1, "normal").state
    assert not bool(state["low"].any())
    assert not torch.equal(state["w"], torch.ones(1))


def test_tables_and_masks_in_buffers_are_kept():
    init = 'self.register_buffer("t", torch.arange(96.0))'
    reference = build("x * self.t", "torch.rand(66, 96)", init)
    for profile in reference.profiles:
        assert torch.equal(reference.draw(1, profile).state["t"], torch.arange(96.0))


def test_a_normalised_row_of_0_is_0():
    assert not bool(F.normalize(torch.zeros(1, 4)).any())
