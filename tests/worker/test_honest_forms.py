"""Honest forms that a gate without their member refused, and what is wrong beside them."""

import math

import pytest
import torch
from problem_files import forward

from hotloop.worker import from_bias, plain_forms, reordered, sequential
from hotloop.worker.cases import CaseBook
from hotloop.worker.compare import gate
from hotloop.worker.envelope import OtherOrder
from hotloop.worker.reference import build_reference

LOG2_E = 1.4426950408889634
ROWS, LENGTH = 16, 1024


def book_of(body, values, profiles, seeds=2):
    book = CaseBook(build_reference(forward(body, values)), "nominal")
    for profile in profiles:
        for seed in range(seeds):
            book.add(profile, seed, cache_bytes=1 << 26)
    return book


def refused_on(book, kernel):
    refused = []
    for case in book:
        draw, (golden,) = book.materialise(case)
        if not gate(kernel(*draw.inputs), golden, case.bounds[0]).passed:
            refused.append(case.profile)
    return refused


def chained(x):
    """Sum along dimension 1 with one float32 accumulator."""
    total = torch.zeros_like(x[:, 0])
    for term in x.unbind(1):
        total = total + term
    return total


def scaled_softmax(x):
    """A softmax whose scores are scaled once, for the power of two: as FlashAttention does."""
    scores = x * LOG2_E
    weights = torch.exp2(scores - scores.amax(1, keepdim=True))
    return weights / weights.sum(1, keepdim=True)


def narrow_softmax(x):
    return scaled_softmax(x.half().float())


def test_scores_scaled_before_the_largest_is_subtracted_pass_and_narrow_ones_do_not():
    book = book_of("torch.softmax(x, 1)", "torch.rand(16, 400)", ("shipped", "large", "sorted"))
    assert refused_on(book, scaled_softmax) == []
    assert {"shipped", "large", "sorted"} <= set(refused_on(book, narrow_softmax))


def test_a_new_draw_has_members_of_its_own_where_they_are_quick():
    """In `large` two scores of a row all but tie in some draws: by how much is luck of the draw."""
    reference = build_reference(forward("torch.softmax(x, 1)", "torch.rand(16, 400)"))
    known = CaseBook(reference, "nominal")
    known.add("large", 2, cache_bytes=0)
    (case,) = known
    assert 0 < case.envelope_s < math.inf

    def new_draws(envelope_s):
        case.envelope_s = envelope_s
        book = CaseBook(reference, "nominal")
        for seed in range(40, 48):
            book.add_like(case, seed)
        return book

    quick = new_draws(0.1)
    assert refused_on(quick, scaled_softmax) == []
    assert len(refused_on(quick, narrow_softmax)) == len(quick.cases) == 8
    assert refused_on(new_draws(10.0), scaled_softmax) != []


@pytest.mark.parametrize("log", [False, True])
def test_masked_runs_of_scores_are_no_numbers_in_no_member(log):
    masked = torch.triu(torch.ones(16, 16, dtype=torch.bool), 1)
    scores = torch.randn(16, 16, generator=torch.manual_seed(1)) - 300
    scores = scores.masked_fill(masked, -math.inf)
    want = (torch.log_softmax if log else torch.softmax)(scores, 1)
    for arithmetic in (sequential, reordered):
        torch.testing.assert_close(arithmetic.softmax(scores, 1, log=log), want)


SCALES = {
    "x / x.abs().mean(1, keepdim=True)": lambda x, total: x / (total(x.abs()) / LENGTH)[:, None],
    "x / torch.sqrt(torch.mean(x ** 2, dim=1, keepdim=True) + 1e-5)": (
        lambda x, total: x / (total(x * x) / LENGTH + 1e-5).sqrt()[:, None]
    ),
}


@pytest.mark.parametrize("body", SCALES)
def test_a_mean_of_sizes_may_have_one_accumulator(body):
    profiles = ("shipped", "normal", "positive_mean", "sparse", "constant_rows", "sorted")
    book = book_of(body, f"torch.rand({ROWS}, {LENGTH})", profiles)
    assert refused_on(book, lambda x: SCALES[body](x, chained)) == []
    short = refused_on(book, lambda x: SCALES[body](x, lambda terms: chained(terms[:, 1:])))
    assert {"shipped", "normal", "positive_mean", "sparse", "constant_rows"} <= set(short)
    narrow = refused_on(book, lambda x: SCALES[body](x, lambda t: t.half().float().sum(1)))
    assert {"shipped", "normal", "positive_mean", "sparse"} <= set(narrow)


def test_a_mean_behind_a_centre_has_a_warp():
    """The squares of what is left are a variance: with one accumulator it would excuse others."""
    x = torch.rand(4, 512, generator=torch.manual_seed(1)) + 1
    with OtherOrder(sequential):
        scale = x.square().mean(1, keepdim=True)
        left = x - x.mean(1, keepdim=True)
        variance = left.square().mean(1, keepdim=True)
    assert torch.equal(scale, sequential.mean(x.square(), [1], keepdim=True))
    assert torch.equal(variance, sequential.centre(left.square(), [1], keepdim=True))


def shifted_variance(x):
    moved = x - x[:, :1]
    mean = moved.mean(1)
    return (moved.square().sum(1) - x.shape[1] * mean.square()) / (x.shape[1] - 1)


def one_pass(x):
    return (x.square().sum(1) - x.shape[1] * x.mean(1).square()) / (x.shape[1] - 1)


def test_a_variance_about_the_first_element_passes_and_one_in_one_pass_does_not():
    profiles = ("shipped", "normal", "positive_mean", "large", "small", "sorted")
    book = book_of("x.var(1)", "torch.rand(48, 600)", profiles)
    assert refused_on(book, shifted_variance) == []
    assert refused_on(book, one_pass).count("positive_mean") == 2


ALONE = {
    "softmax": lambda x: torch.softmax(x, 0),
    "log-softmax": lambda x: torch.log_softmax(x, -1),
    "sum": lambda x: x.sum(),
    "sum of a dimension": lambda x: x.sum(0),
    "mean": lambda x: x.mean(0, keepdim=True),
    "variance": lambda x: x.var(0, correction=0),
    "running sum": lambda x: x.cumsum(0),
    "product": lambda x: x.prod(0),
    "log-sum-exp": lambda x: torch.logsumexp(x, 0),
    "norm": lambda x: torch.linalg.vector_norm(x, dim=0),
}


@pytest.mark.parametrize("arithmetic", [sequential, reordered, from_bias])
@pytest.mark.parametrize("name", ALONE)
def test_a_tensor_without_dimensions_can_be_reduced(name, arithmetic):
    x = torch.tensor(1.5)
    with OtherOrder(arithmetic):
        got = ALONE[name](x)
    torch.testing.assert_close(got, ALONE[name](x))


def test_a_problem_that_reduces_a_number_can_be_judged():
    book = book_of("torch.sum(torch.mean(x), 0)", "torch.rand(8, 40)", ("shipped",))
    assert refused_on(book, lambda x: x.mean()) == []
    assert refused_on(book, lambda x: x.mean() * (1 + 1e-5)) == ["shipped"] * 2


def product(a, b):
    """Return a @ b with one accumulator an output."""
    out = torch.zeros(a.shape[0], b.shape[1])
    for column, row in zip(a.t().contiguous().unbind(), b.unbind(), strict=True):
        out.addcmul_(column[:, None], row[None])
    return out


def products(depth):
    loaded = forward("x @ y", f"torch.rand(4, {depth})", f"torch.rand({depth}, 4)")
    book = CaseBook(build_reference(loaded), "nominal")
    for profile in ("shipped", "normal", "positive_mean", "large"):
        book.add(profile, 3, cache_bytes=1 << 26)
    return book


@pytest.mark.slow
def test_a_long_product_may_have_one_accumulator():
    book = products(1 << 16)
    assert refused_on(book, product) == []
    # Of positive operands the roundings average out over so many terms.
    narrow = refused_on(book, lambda a, b: a.half().float() @ b.half().float())
    assert {"normal", "large"} <= set(narrow)
    short = refused_on(book, lambda a, b: a[:, 1:] @ b[1:])
    assert {"normal", "large"} <= set(short)


def test_an_exponential_of_numpy_with_1_taken_off_passes_on_small_values():
    book = book_of("torch.nn.functional.elu(x)", "torch.rand(64, 256)", ("small",), seeds=5)

    def kernel(x):
        below = torch.from_numpy(x.numpy().clip(max=0))
        return torch.where(x > 0, x, plain_forms.expm1(below))

    assert refused_on(book, kernel) == []
    assert len(refused_on(book, lambda x: kernel(x).half().float())) == 5
