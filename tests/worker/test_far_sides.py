"""Extrema that begin at a finite number are refused, whatever they are taken over.

Each mistake had passed every profile, as some value of its range was always on the right side.
"""

import math

import pytest
import torch
from seeded_verdicts import SEEDS, book_of, built, passed

from hotloop.worker.apart import Along, Sides, sided

LOG2_E = 1.4426950408889634
BLOCK = 64


def below(start):
    return lambda top: top.clamp(min=start)


def rows(x):
    """A tensor as rows that are reduced: of one dimension, one row."""
    return x.reshape(1, -1) if x.dim() < 2 else x


def plain_softmax(x, begin=lambda top: top, dim=-1):
    e = torch.exp(x - begin(x.amax(dim, keepdim=True)))
    return e / e.sum(dim, keepdim=True)


def folded(x, dim):
    """The maximum and the sum of exponentials, online, block by block."""
    top = torch.full_like(x.narrow(dim, 0, 1), -math.inf)
    total = torch.zeros_like(top)
    for block in x.split(BLOCK, dim):
        new = torch.maximum(top, block.amax(dim, keepdim=True))
        total = total * torch.exp(top - new) + torch.exp(block - new).sum(dim, keepdim=True)
        top = new
    return top, total


def online_softmax(x, dim=-1):
    top, total = folded(x, dim)
    return torch.exp(x - top) / total


def exp2_softmax(x, dim=-1):
    scores = x * LOG2_E
    e = torch.exp2(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


def log_sum_exp(x, begin=lambda top: top):
    top = begin(x.amax())
    return torch.exp(x - top).sum().log() + top


def online_log_sum_exp(x):
    top, total = folded(x.reshape(1, -1), 1)
    return (top + total.log()).reshape(())


def two_stages(x):
    """The sum of exponentials of each row first, then those of the rows."""
    tops = x.amax(1)
    totals = torch.exp(x - tops[:, None]).sum(1)
    top = tops.amax()
    return (totals * torch.exp(tops - top)).sum().log() + top


def loss(x, y, top):
    logs = torch.exp(x - top).sum(1).log() + top[:, 0]
    return (logs - x.gather(1, y[:, None])[:, 0]).mean()


def over_rows(x):
    return x - x.amax(0) - torch.exp(x - x.amax(0)).sum(0).log()


MAXIMA = {
    "of everything": (
        ("torch.max(x)", "torch.randn(64, 96)"),
        [torch.amax, lambda x: x.amax(1).amax(), lambda x: x.reshape(-1, 8).amax(0).amax()],
        [lambda x, s=s: below(s)(x.amax()) for s in (0, -1e4, -65504)],
    ),
    "softmax of one row": (
        ("torch.softmax(x, -1)", "torch.randn(1, 600)"),
        [plain_softmax, online_softmax, exp2_softmax],
        [lambda x: plain_softmax(x, below(0)), lambda x: plain_softmax(x, below(-1e4))],
    ),
    "softmax of one dimension": (
        ("torch.softmax(x, 0)", "torch.randn(600)"),
        [plain_softmax, online_softmax, exp2_softmax],
        [lambda x: plain_softmax(x, below(0))],
    ),
    "log-sum-exp of everything": (
        ("torch.logsumexp(x.flatten(), 0)", "torch.randn(64, 96)"),
        [log_sum_exp, online_log_sum_exp, two_stages],
        [lambda x: log_sum_exp(x, below(0))],
    ),
    "loss of one row": (
        (
            "torch.nn.functional.cross_entropy(x, y)",
            "torch.randn(1, 500)",
            "torch.randint(0, 500, (1,))",
        ),
        [lambda x, y: loss(x, y, x.amax(1, keepdim=True))],
        [lambda x, y: loss(x, y, x.amax(1, keepdim=True).clamp(min=0))],
    ),
    "over the first dimension": (
        ("x.amax(0)", "torch.randn(64, 96)"),
        [lambda x: x.amax(0), lambda x: x.reshape(8, 8, -1).amax(0).amax(0)],
        [lambda x: x.amax(0).clamp(min=-65504)],
    ),
    "softmax over the first dimension": (
        ("torch.softmax(x, 0)", "torch.randn(600, 24)"),
        [lambda x, f=f: f(x, dim=0) for f in (plain_softmax, online_softmax, exp2_softmax)],
        [lambda x: plain_softmax(x, below(0), 0)],
    ),
    "log-softmax over the first dimension": (
        ("torch.log_softmax(x, 0)", "torch.randn(64, 96)"),
        [over_rows],
        [lambda x: x - torch.exp(x).sum(0).log()],
    ),
    "softmin": (
        ("torch.nn.functional.softmin(x, 1)", "torch.randn(64, 96)"),
        [lambda x, f=f: f(-x) for f in (plain_softmax, online_softmax, exp2_softmax)],
        [lambda x: plain_softmax(-x, below(0))],
    ),
    "of scores and a row that is added": (
        ("torch.softmax(x + y, 1)", "torch.randn(64, 96)", "torch.randn(96)"),
        [lambda x, y, f=f: f(x + y) for f in (plain_softmax, online_softmax, exp2_softmax)],
        [lambda x, y: plain_softmax(x + y, below(0))],
    ),
}
MINIMA = {
    "of rows": (
        ("torch.min(x, 1)[0]", "torch.randn(64, 96)"),
        [lambda x: x.amin(1), lambda x: x.reshape(64, 8, 12).amin(2).amin(1)],
        [lambda x, s=s: x.amin(1).clamp(max=s) for s in (1e4, 65504)],
    ),
    "of everything": (
        ("torch.min(x)", "torch.randn(64, 96)"),
        [torch.amin, lambda x: x.amin(0).amin()],
        [lambda x, s=s: x.amin().clamp(max=s) for s in (1e4, 65504)],
    ),
    "place in rows": (
        ("torch.argmin(x, 1)", "torch.randn(64, 96)"),
        [lambda x: x.argmin(1)],
        [lambda x: x.clamp(max=1e4).argmin(1)],
    ),
    "over the first dimension": (
        ("x.amin(0)", "torch.randn(64, 96)"),
        [lambda x: x.amin(0)],
        [lambda x: x.amin(0).clamp(max=1e4)],
    ),
    "beside a maximum": (
        ("x.amax(1) - x.amin(1)", "torch.randn(64, 96)"),
        [lambda x: x.amax(1) - x.amin(1)],
        [
            lambda x: x.amax(1) - x.amin(1).clamp(max=1e4),
            lambda x: x.amax(1).clamp(min=-1e4) - x.amin(1),
        ],
    ),
}
ALL = {
    **{f"maximum {n}": c for n, c in MAXIMA.items()},
    **{f"minimum {n}": MINIMA[n] for n in MINIMA},
}


@pytest.mark.parametrize("name", ALL)
def test_a_finite_beginning_is_refused_and_honest_forms_pass_on_every_seed(name):
    problem, honest, wrong = ALL[name]
    book = book_of(built(*problem), "far")
    assert [passed(book, kernel) for kernel in honest] == [len(SEEDS)] * len(honest)
    assert [passed(book, kernel) for kernel in wrong] == [0] * len(wrong)


@pytest.mark.parametrize(
    ("body", "shape", "sides"),
    [
        ("torch.softmax(x, 1)", "64, 96", Sides(below=True)),
        ("torch.argmin(x, 1)", "64, 96", Sides(above=True)),
        ("x * 2", "64, 96", Sides()),
        ("x.amax(0)", "64, 96", Sides(below=True, along=Along.COLUMNS)),
        ("torch.max(x)", "64, 96", Sides(below=True, along=Along.WHOLE)),
        ("(x - x.min()) / (x.max() - x.min())", "96", Sides(below=True, along=Along.WHOLE)),
        ("torch.relu(x).amax()", "64, 96", Sides(below=True)),  # never below 0
    ],
)
def test_no_more_is_on_one_side_than_shows(body, shape, sides):
    assert built(body, f"torch.randn({shape})").reach.sides == sides


def test_one_side_costs_no_profile_and_no_rule():
    """All negative, a root has no result; behind a relu nothing would be left."""
    root = built("torch.sqrt(x).amax()", "torch.rand(64, 96)")
    assert "far" not in root.profiles
    assert "positive_mean" in root.profiles
    kept = built("torch.log_softmax(x, 0)", "torch.randn(64, 96)")
    assert "far" in kept.profiles
    assert not kept.notes


@pytest.mark.parametrize("shape", [(2, 5), (3, 5), (4, 5), (64, 96), (1, 3, 5), (7,), ()])
@pytest.mark.parametrize("along", Along)
def test_the_parts_of_both_signs_are_apart(shape, along):
    tensor = torch.zeros(shape)
    for part, sign in sided(tensor, Sides(below=True, above=along is not Along.WHOLE, along=along)):
        assert not bool(part.any())
        part += sign
    has_parts = along is Along.WHOLE or len(shape) > (along is Along.ROWS)
    assert bool((tensor < 0).any()) == has_parts
    assert bool((tensor > 0).any()) == (has_parts and along is not Along.WHOLE)
