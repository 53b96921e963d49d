"""Inputs alike: what they show, that honest kernels pass on them, and where they are left out."""

import pytest
import torch
from problem_files import forward

from hotloop.worker.alike import bring_near, places
from hotloop.worker.cases import CaseBook
from hotloop.worker.compare import gate
from hotloop.worker.random_sources import MASK, NORMAL, UNIT
from hotloop.worker.reference import build_reference

SEEDS = range(10)
ROWS, COLUMNS = 96, 320


def built(body, n=2, draw="torch.randn", rest=()):
    return build_reference(forward(body, *[f"{draw}({ROWS}, {COLUMNS})"] * n, *rest))


def passed(reference, kernel):
    """Return on how many draws of inputs alike a kernel, a function of the inputs, passes."""
    book = CaseBook(reference, "nominal")
    for seed in SEEDS:
        book.add("alike", seed, cache_bytes=1 << 26)
    count = 0
    for case in book:
        draw, (golden,) = book.materialise(case)
        count += gate(kernel(*draw.inputs).contiguous(), golden, case.bounds[0]).passed
    return count


def chained(x):
    """Sum rows by one running accumulator."""
    total = torch.zeros(len(x))
    for column in x.unbind(1):
        total = total + column
    return total


def distance(x, y, eps=1e-6, *, total=chained):
    d = x - y + eps
    return total(d * d).sqrt()


def triplet(a, p, n, **options):
    return (distance(a, p, **options) - distance(a, n, **options) + 1).clamp(min=0)


def apart(x, y):
    """Squares of differences, by the binomial formula."""
    return x * x - 2 * x * y + y * y


def lanes(x):
    return x.unflatten(1, (-1, 32)).sum(1).sum(1)


def huber(d, square):
    return torch.where(d.abs() < 1, 0.5 * square, d.abs() - 0.5)


TRIPLET = "torch.nn.functional.triplet_margin_loss(x, y, z, reduction='{}')"
SHOWN = {
    "triplet": (TRIPLET.format("none"), 3, triplet, lambda *a: triplet(*a, eps=0.0)),
    "triplet, mean": (
        TRIPLET.format("mean"),
        3,
        lambda *a: triplet(*a, total=lanes).mean(),
        lambda *a: triplet(*a, total=lanes, eps=0.0).mean(),
    ),
    "distance": (
        "torch.nn.functional.pairwise_distance(x, y)",
        2,
        distance,
        lambda x, y: distance(x, y, eps=0.0),
    ),
    "mse": (
        "torch.nn.functional.mse_loss(x, y)",
        2,
        lambda x, y: chained((x - y) ** 2).sum() / (ROWS * COLUMNS),
        lambda x, y: apart(x, y).mean(),
    ),
    "huber": (
        "torch.nn.functional.smooth_l1_loss(x, y)",
        2,
        lambda x, y: lanes(huber(x - y, (x - y) ** 2)).mean() / COLUMNS,
        lambda x, y: huber(x - y, apart(x, y)).mean(),
    ),
    "difference": ("x - y", 2, torch.sub, lambda x, y: x - y * (1 + 2**-20)),
}


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.parametrize("draw", ["torch.rand", "torch.randn"])
def test_what_vanishes_between_inputs_alike_is_judged(name, draw):
    body, n, right, wrong = SHOWN[name]
    reference = built(body, n, draw)
    assert "alike" in reference.profiles
    assert passed(reference, right) == len(SEEDS)
    assert passed(reference, wrong) == 0


@pytest.mark.parametrize(
    "body",
    [
        "1 - torch.nn.functional.cosine_similarity(x, y)",
        "(x * x).sum(1) - (y * y).sum(1)",
        "torch.log(x.abs()).sum(1) - torch.log(y.abs()).sum(1)",
    ],
)
def test_what_cancels_in_the_reference_itself_is_left_out(body):
    reference = built(body)
    assert "alike" not in reference.profiles
    assert any("'alike' left out: the reference itself" in note for note in reference.notes)


@pytest.mark.parametrize(
    ("body", "n"),
    [("x * 2", 1), ("x @ y.T", 2), ("x * (y > 0.5)", 2)],
    ids=["one input", "products", "used as a condition"],
)
def test_honest_kernels_of_other_problems(body, n):
    reference = built(body, n)
    if n == 1 or "@" in body:
        assert "alike" not in reference.profiles
        return
    assert passed(reference, lambda x, y: torch.where(y > 0.5, x, 0.0)) == len(SEEDS)


def test_values_stay_in_a_positive_domain():
    reference = built("torch.log(x) - torch.log(y) + x", draw="torch.rand")
    draw = reference.draw(3, "alike")
    assert all(float(v.min()) > 0 for v in draw.inputs)


def test_numbers_are_near_and_every_second_row_of_the_second_input_is_equal():
    gen = torch.Generator().manual_seed(0)
    values = [torch.randn(ROWS, COLUMNS) for _ in range(3)]
    first = values[0].clone()
    bring_near(values, [(0, 1, 2)], gen)
    assert torch.equal(values[0], first)
    assert torch.equal(values[1][1::2], first[1::2])
    for near, of in ((values[1][::2], first[::2]), (values[2], first)):
        share = (near / of - 1).abs()
        assert 2**-10 < float(share.median()) < float(share.max()) < 2**-6


def test_groups_are_free_inputs_of_one_shape_and_dtype():
    x = torch.randn(4, 3)
    values = [x, x.clone(), 3.0, x.half(), torch.randn(4, 2), x.clone(), x > 0, x.clone()]
    laws = [NORMAL, UNIT, None, NORMAL, NORMAL, None, MASK, UNIT]
    assert places(values, laws) == ((0, 1, 7),)
    assert places(values[2:6], laws[2:6]) == ()


def test_scalars_and_single_rows():
    gen = torch.Generator().manual_seed(0)
    for shape in ((), (1,), (1, 5)):
        values = [torch.ones(shape), torch.zeros(shape)]
        bring_near(values, [(0, 1)], gen)
        assert float((values[1] - 1).abs().max()) < 0.02
