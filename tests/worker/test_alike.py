"""Inputs alike: what they show, that honest kernels pass on them, and where they are left out."""

import dataclasses
import itertools

import pytest
import torch
from problem_files import forward

from hotloop.worker import trials
from hotloop.worker.alike import CLOSE, NEARBY, bring_near, leaves_open, places
from hotloop.worker.cases import CaseBook
from hotloop.worker.compare import gate
from hotloop.worker.load import load_problem
from hotloop.worker.random_sources import MASK, NORMAL, UNIT
from hotloop.worker.reference import build_reference

SEEDS = range(10)
ROWS, COLUMNS = 96, 320


def built(body, n=2, draw="torch.randn", **options):
    return build_reference(forward(body, *[f"{draw}({ROWS}, {COLUMNS})"] * n, **options))


def of_inputs(kernel):
    """A kernel of the inputs alone."""
    return lambda draw: kernel(*draw.inputs)


def passed(reference, kernel):
    """Return on how many draws of inputs alike a kernel, a function of the draw, passes."""
    assert "alike" in reference.profiles
    book = CaseBook(reference, "nominal")
    for seed in SEEDS:
        book.add("alike", seed, cache_bytes=1 << 26)
    count = 0
    for case in book:
        draw, (golden,) = book.materialise(case)
        count += gate(kernel(draw).contiguous(), golden, case.bounds[0]).passed
    return count


def chained(x):
    """Sum rows by one running accumulator."""
    total = torch.zeros(len(x))
    for column in x.unbind(1):
        total = total + column
    return total


def lanes(x):
    return x.unflatten(1, (-1, 32)).sum(1).sum(1)


def distance(x, y, eps=1e-6, *, total=chained):
    d = x - y + eps
    return total(d * d).sqrt()


def triplet(a, p, n, **options):
    return (distance(a, p, **options) - distance(a, n, **options) + 1).clamp(min=0)


def apart(x, y):
    """Squares of differences, by the binomial formula."""
    return x * x - 2 * x * y + y * y


def huber(d, square):
    return torch.where(d.abs() < 1, 0.5 * square, d.abs() - 0.5)


TRIPLET = "torch.nn.functional.triplet_margin_loss({}, reduction='{}')"
SHOWN = {
    "triplet": (TRIPLET.format("x, y, z", "none"), 3, triplet, lambda *a: triplet(*a, eps=0.0)),
    "triplet, another order": (
        TRIPLET.format("z, x, y", "none"),
        3,
        lambda x, y, z: triplet(z, x, y),
        lambda x, y, z: triplet(z, x, y, eps=0.0),
    ),
    "triplet, eps in one": (
        TRIPLET.format("x, y, z", "none"),
        3,
        lambda *a: triplet(*a, total=lanes),
        lambda a, p, n: (distance(a, p) - distance(a, n, eps=0.0) + 1).clamp(min=0),
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
    assert passed(reference, of_inputs(right)) == len(SEEDS)
    assert passed(reference, of_inputs(wrong)) == 0


def test_an_epsilon_shows_in_a_mean_of_long_rows():
    """In a mean the pairs' shares of the rows differ, lest what they gain and lose cancels."""
    rows = ["torch.randn(32, 4096)"] * 3
    reference = build_reference(forward(TRIPLET.format("x, y, z", "mean"), *rows))
    right = of_inputs(lambda *a: triplet(*a, total=lanes).mean())
    wrong = of_inputs(lambda *a: triplet(*a, total=lanes, eps=0.0).mean())
    assert passed(reference, right) == len(SEEDS)
    assert passed(reference, wrong) == 0


def siamese(draw, *, parts):
    """Distances of two branches of one layer, the second's products summed in parts."""
    w, b = draw.state["l.weight"], draw.state["l.bias"]
    x, y = draw.inputs
    first = torch.nn.functional.linear(x, w, b)
    pieces = zip(y.chunk(parts, 1), w.chunk(parts, 1), strict=True)
    second = sum(a @ c.T for a, c in pieces) + b
    return 1 + distance(first, second, total=lanes)


def branches(std):
    weights = f"torch.nn.init.normal_(self.l.weight, 0, {std})"
    return built(
        "1 + torch.nn.functional.pairwise_distance(self.l(x), self.l(y))",
        init=f"self.l = torch.nn.Linear({COLUMNS}, 128); {weights}",
    )


@pytest.mark.parametrize("std", [0.005, 0.05])
@pytest.mark.parametrize("parts", [1, 4])
def test_branches_need_not_be_taken_in_one_order(std, parts):
    assert passed(branches(std), lambda draw: siamese(draw, parts=parts)) == len(SEEDS)


def test_branches_that_are_rounding_errors_apart_are_left_out():
    assert "alike" not in branches(1.0).profiles


@pytest.mark.parametrize("scale", [1.0, 26.1, 66.1])
def test_multiply_and_add_may_be_one_operation(scale):
    """As a GPU's compiler contracts x * s - y * s: one product is not rounded."""
    reference = built(
        f"(1 + torch.nn.functional.pairwise_distance({scale} * x, {scale} * y)).mean()"
    )

    def fused(x, y):
        s = torch.tensor(scale)
        d = (x.double() * s.double() - (y * s).double()).float() + 1e-6
        return (1 + lanes(d * d).sqrt()).mean()

    assert passed(reference, of_inputs(fused)) == len(SEEDS)


@pytest.mark.parametrize("body", ["torch.remainder(x, y)", "torch.fmod(x, y)", "x // y", "x / y"])
def test_quotients_may_be_off_in_the_last_bits(body):
    reference = built(body)
    whole = {"remainder": torch.floor, "fmod": torch.trunc, "//": torch.floor}
    cut = next((f for name, f in whole.items() if name in body), None)

    def by_reciprocal(x, y):
        quotient = x * (1 / y)
        if cut is None:
            return quotient
        return cut(quotient) if "//" in body else x - y * cut(quotient)

    assert passed(reference, of_inputs(by_reciprocal)) == len(SEEDS)


@pytest.mark.parametrize(
    "body",
    [
        "1 - torch.nn.functional.cosine_similarity(x, y)",
        "(x * x).sum(1) - (y * y).sum(1)",
        "torch.log(x.abs()).sum(1) - torch.log(y.abs()).sum(1)",
    ],
)
def test_what_cancels_in_the_reference_itself_is_left_out(body, monkeypatch):
    reference = built(body)
    assert "alike" not in reference.profiles
    assert any("'alike' left out: the reference itself" in note for note in reference.notes)
    monkeypatch.setattr(trials, "ALIKE_FACTOR", 1e9)
    assert "alike" in built(body).profiles  # nothing else kept it out


@pytest.mark.parametrize(
    "body",
    [
        "z.gather(1, (x - y).abs().argmin(1, True))",
        "x.gather(1, (x - y).abs().topk(8, 1).indices)",
        "x[((x - y) ** 2).sum(1).argsort()]",
        "z.gather(1, (x - y).max(1, True).indices)",
    ],
)
def test_what_is_picked_by_comparing_is_left_out(body):
    assert "alike" not in built(body, 3).profiles


def test_extrema_alone_pick_nothing():
    assert not leaves_open({"max", "sub"})
    assert "alike" in built("(x - y).max(1).values").profiles


@pytest.mark.parametrize(("body", "n"), [("x * 2", 1), ("x @ y.T", 2)])
def test_one_input_and_products_alone_have_no_use_for_it(body, n):
    assert "alike" not in built(body, n).profiles


def test_an_input_that_is_a_condition_may_be_near_the_others():
    right = of_inputs(lambda x, y: torch.where(y > 0.5, x, 0.0))
    assert passed(built("x * (y > 0.5)"), right) == len(SEEDS)


@pytest.mark.parametrize(
    "views", ["b[1:], b[:-1]", "b[:, :7], b[:, 1:]", "b[1:], b[1:]", "b[:16], b[16:32]"]
)
def test_inputs_that_share_memory_are_not_brought_near(views):
    text = forward("torch.relu(x) * torch.sigmoid(y)", "torch.randn(3)", "torch.randn(3)")
    source = text.problem.source
    start = source.index("def get_inputs")
    shared = f"def get_inputs():\n    b = torch.randn(33, 8)\n    return [{views}]\n"
    rest = source[source.index("\n\n", start) :] if "\n\n" in source[start:] else ""
    reference = build_reference(forward_of(text, source[:start] + shared + rest))
    assert "alike" not in reference.profiles
    assert "normal" in reference.profiles


def forward_of(loaded, source):
    return load_problem(dataclasses.replace(loaded.problem, source=source), device="cpu")


def test_values_stay_in_a_positive_domain():
    reference = built("torch.log(x) - torch.log(y) + x", draw="torch.rand")
    draw = reference.draw(3, "alike")
    assert all(float(v.min()) > 0 for v in draw.inputs)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_all_are_near_and_each_pair_is_close_in_some_rows(n):
    orders = set()
    for seed in range(8):
        gen = torch.Generator().manual_seed(seed)
        values = [torch.randn(ROWS, COLUMNS) for _ in range(n)]
        for value in values:
            value[value == 0] = 1.0  # of a zero nothing near is unequal, and no ratio is left
        first = values[0].clone()
        bring_near(values, [tuple(range(n))], gen)
        assert torch.equal(values[0], first)
        shares = []
        for a, b in itertools.combinations(values, 2):
            off = (a / b - 1).abs()
            assert 0 < float(off.max()) < 5 * NEARBY
            close = (off < 3 * CLOSE).all(1)
            assert bool((off[close] > CLOSE / 2).all())
            shares.append(float(close.float().mean()))
        expected = [2.0 ** -(k + 1) for k in range(len(shares))]
        assert sorted(shares, reverse=True) == pytest.approx(expected, abs=0.02)
        orders.add(tuple(shares))
    assert len(orders) > (n > 2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_numbers_of_other_dtypes_are_near_and_not_equal(dtype):
    gen = torch.Generator().manual_seed(0)
    values = [torch.randn(ROWS, COLUMNS).to(dtype) for _ in range(2)]
    bring_near(values, [(0, 1)], gen)
    whole = values[0].abs() >= torch.finfo(dtype).tiny  # of others too few bits are left
    off = (values[1].double() / values[0].double() - 1).abs()[whole]
    assert float(off.min()) > 0
    assert float(off.max()) < 12 * max(NEARBY, torch.finfo(dtype).eps)


def test_groups_are_free_inputs_of_one_shape_and_dtype():
    x = torch.randn(4, 3)
    values = [x, x.clone(), 3.0, x.half(), torch.randn(4, 2), x.clone(), x > 0, x.clone()]
    laws = [NORMAL, UNIT, None, NORMAL, NORMAL, None, MASK, UNIT]
    assert places(values, laws) == ((0, 1, 7),)
    assert places(values[2:6], laws[2:6]) == ()
    assert places([x.clone(), x.clone()], ["tril", "tril"]) == ()


def test_scalars_and_single_rows():
    gen = torch.Generator().manual_seed(0)
    for shape in ((), (1,), (1, 5)):
        values = [torch.ones(shape), torch.zeros(shape)]
        bring_near(values, [(0, 1)], gen)
        off = (values[1] - 1).abs()
        assert CLOSE / 2 < float(off.min()) <= float(off.max()) < 3 * CLOSE
