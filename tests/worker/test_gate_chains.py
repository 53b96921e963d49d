"""Chains: a kernel with one accumulator an output is honest, also where the values are equal.

Rounding of a running sum of equal values is biased, so that its error grows with the length and not
with its root. Accumulators of 16 bits are hundreds of times worse and stay refused, and so does a
variance in one pass, for which a mean by one accumulator would be an excuse.
"""

import pytest
import torch
from problem_files import forward

from hotloop.worker import reordered, sequential
from hotloop.worker.audit_sums import NarrowSums
from hotloop.worker.cases import CaseBook
from hotloop.worker.compare import gate, make_bound
from hotloop.worker.reference import build_reference

LENGTH = 1024
SHOWN = ("shipped", "normal", "positive_mean", "sparse", "constant_rows", "sorted")
BODIES = {
    "sum": ("x.sum(1)", f"2, {LENGTH}, 24"),
    "mean": ("x.mean(1)", f"2, {LENGTH}, 24"),
    "softmax": ("torch.softmax(x, 1)", f"16, {LENGTH}"),
    "log-softmax": ("torch.log_softmax(x, 1)", f"16, {LENGTH}"),
    "log-sum-exp": ("torch.logsumexp(x, 1)", f"24, {LENGTH}"),
}


def book_of(body, values, init="pass", profiles=()):
    reference = build_reference(forward(body, values, init=init))
    book = CaseBook(reference, "nominal")
    for profile in profiles or (*reference.profiles, *reference.final_profiles):
        book.add(profile, 7, cache_bytes=1 << 26)
    return book


def refused_on(book, candidate):
    refused = []
    for case in book:
        draw, (golden,) = book.materialise(case)
        if not gate(candidate(draw), golden, case.bounds[0]).passed:
            refused.append(case.profile)
    return refused


def chained(x):
    """Sum along dimension 1 with one float32 accumulator."""
    total = torch.zeros_like(x[:, 0])
    for term in x.unbind(1):
        total = total + term
    return total


def in_lanes(rows, lanes=32):
    """Sum rows with `lanes` accumulators, combined by a tree."""
    return chained(rows.unflatten(1, (-1, lanes))).sum(1)


def kernel(name, x, total=chained):
    if name == "sum":
        return total(x)
    if name == "mean":
        return total(x) / x.shape[1]
    top = x.amax(1, keepdim=True)
    weights = torch.exp(x - top)
    norm = total(weights)[:, None]
    if name == "softmax":
        return weights / norm
    return (top + norm.log())[:, 0] if name == "log-sum-exp" else x - top - norm.log()


@pytest.mark.parametrize("name", BODIES)
def test_one_accumulator_an_output_passes_every_profile_and_a_narrow_one_none(name):
    body, shape = BODIES[name]
    book = book_of(body, f"torch.rand({shape})", profiles=SHOWN)
    assert len(book.cases) >= 5
    assert refused_on(book, lambda d: kernel(name, d.inputs[0])) == []
    for narrow in (torch.float16, torch.bfloat16):

        def low(draw, narrow=narrow):
            with NarrowSums(narrow):
                return book.reference.eager(draw)[0]

        refused = refused_on(book, low)
        assert {"shipped", "normal", "positive_mean", "sparse"} <= set(refused)


@pytest.mark.parametrize("length", [512, 8192])
@pytest.mark.parametrize("value", [0.1, 0.7])
def test_a_chain_of_equal_values_is_in_the_envelope_only_with_a_member_that_has_one(length, value):
    x = torch.full((3, length), value)
    golden = x.double().mean(1)
    members = [x.mean(1), *(order.mean(x, [1]) for order in (sequential, reordered))]
    honest = chained(x) / length
    with_chain, without = (
        make_bound(golden, kept, torch.float32, exact=False) for kept in (members, members[::2])
    )
    assert gate(honest, golden, with_chain).passed
    assert not gate(honest, golden, without).passed
    with NarrowSums(torch.float16):
        narrow = x.mean(1)
    assert not gate(narrow, golden, with_chain).passed


def test_equal_scores_have_an_error_in_a_log_softmax_too():
    """Exponentials of 0 add up without one: a kernel that subtracts a bound of its own has one."""
    scores = torch.full((2, 8192), 1.7)
    shifted = scores - 3.2
    norm = chained(shifted.exp())[:, None]
    golden = torch.log_softmax(scores.double(), 1)
    orders = [m.softmax(scores, 1, log=True) for m in (sequential, reordered)]
    members = [torch.log_softmax(scores, 1), *orders]
    bound = make_bound(golden, members, torch.float32, exact=False)
    honest = shifted - norm.log()
    assert gate(honest, golden, bound).passed
    exact = make_bound(golden, members[::2], torch.float32, exact=False)
    assert not gate(honest, golden, exact).passed
    with NarrowSums(torch.float16):
        narrow = shifted.exp().sum(1, keepdim=True)
    assert not gate(shifted - narrow.log(), golden, bound).passed
    assert not gate(honest * (1 + 2.0**-12), golden, bound).passed


def normalised(rows, *, one_pass):
    count = rows.shape[1]
    mean = (in_lanes(rows) / count)[:, None]
    if one_pass:
        variance = in_lanes(rows * rows)[:, None] / count - mean * mean
    else:
        variance = in_lanes((rows - mean).square())[:, None] / count
    return (rows - mean) * torch.rsqrt(variance.clamp(min=0) + 1e-5)


def test_a_norm_written_by_hand_has_no_single_accumulator_for_an_excuse():
    body = "(lambda y: y * torch.rsqrt(y.square().mean(1, keepdim=True) + 1e-5))({})"
    centred = body.format("x - x.mean(1, keepdim=True)")
    book = book_of(centred, f"torch.rand(16, {LENGTH})", profiles=("positive_mean",))
    assert refused_on(book, lambda d: normalised(d.inputs[0], one_pass=False)) == []
    assert refused_on(book, lambda d: normalised(d.inputs[0], one_pass=True)) == ["positive_mean"]


@pytest.mark.parametrize("count", [512, 8192])
def test_a_norm_by_one_warp_passes_and_a_variance_in_one_pass_does_not(count):
    init = "self.n = torch.nn.GroupNorm(2, 8)"
    profiles = ("shipped", "positive_mean", "constant_rows")
    book = book_of("self.n(x)", f"torch.rand(8, 8, {count // 4})", init, profiles)

    def kernel(draw, *, one_pass):
        x = draw.inputs[0]
        return normalised(x.reshape(16, -1), one_pass=one_pass).view_as(x)

    assert refused_on(book, lambda d: kernel(d, one_pass=False)) == []
    assert "positive_mean" in refused_on(book, lambda d: kernel(d, one_pass=True))


@pytest.mark.parametrize("shape", [(8, 1), (1,)])
def test_the_logarithm_over_a_single_score_is_0_in_every_member(shape):
    """It is so in every kernel; a member that is off would leave nothing to judge by."""
    scores = torch.randn(shape, generator=torch.manual_seed(2))
    for arithmetic in (sequential, reordered):
        assert torch.equal(arithmetic.softmax(scores, -1, log=True), torch.zeros(shape))
        assert torch.equal(arithmetic.softmax(scores, -1), torch.ones(shape))


def test_a_log_softmax_over_one_column_can_be_judged():
    reference = build_reference(forward("(torch.log_softmax(x, 1), x * 2)", "torch.rand(64, 1)"))
    book = CaseBook(reference, "nominal")
    book.add("shipped", 3, cache_bytes=1 << 20)
    (case,) = book
    draw, (golden, _) = book.materialise(case)
    assert gate(torch.zeros(64, 1), golden, case.bounds[0]).passed
    assert not gate(draw.inputs[0] * 1e-3, golden, case.bounds[0]).passed
