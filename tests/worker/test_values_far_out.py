"""Values far from 0: identities that are only finite, maxima of one block, paddings of 0.001.

Each mistake is refused on the profile that is there for it, and its honest form on none.
"""

import pytest
import torch
from problem_files import forward

from hotloop.errors import ProblemError
from hotloop.worker.audit_subject import _fails_at_a_glance
from hotloop.worker.cases import CaseBook
from hotloop.worker.compare import Rigour, gate
from hotloop.worker.eager_errors import concentrated
from hotloop.worker.pieces import end_share, error_carriers
from hotloop.worker.reference import build_reference
from hotloop.worker.value_profiles import FACTORS, LARGE_SCALES, Reach, fill
from hotloop.worker.view import fill_book

BLOCK = 32
SEEDS = range(10)
LARGEST = 10.0
"""A finite number that a kernel takes for infinity."""


def refused_on(book, candidate):
    """Return the profiles on which a candidate, a function of the inputs, is refused."""
    refused = set()
    for case in book:
        draw, (golden,) = book.materialise(case)
        if not gate(candidate(*draw.inputs), golden, case.bounds[0]).passed:
            refused.add(case.profile)
    return refused


def book_of(*problem):
    book = CaseBook(build_reference(forward(*problem)), "nominal")
    fill_book(book)
    return book


def book_of_weights(body, x, weight):
    book = CaseBook(build_reference(forward(body, x, init=weight)), "nominal")
    fill_book(book)
    return book


def refused_with(book, kernel):
    """Return the profiles on which a kernel, a function of the input and `w`, is refused."""
    refused = set()
    for case in book:
        draw, (golden,) = book.materialise(case)
        if not gate(kernel(*draw.inputs, draw.state["w"]), golden, case.bounds[0]).passed:
            refused.add(case.profile)
    return refused


def large_book(*problem):
    """Return ten draws of `large`."""
    book = CaseBook(build_reference(forward(*problem)), "nominal")
    for seed in SEEDS:
        book.add("large", seed, cache_bytes=1 << 26)
    return book


def softmax_of_first_block(x):
    e = torch.exp(x - x[:, :BLOCK].amax(1, keepdim=True))
    return e / e.sum(1, keepdim=True)


def blocks_folded(x, *, keeps_maximum=True):
    """Return each row's maximum and sum of exponentials, carried from block to block."""
    top = torch.full_like(x[:, 0], -torch.inf)
    total = torch.zeros_like(top)
    for block in x.split(BLOCK, dim=1):
        new = block.amax(1)
        if keeps_maximum:
            new = torch.maximum(top, new)
        total = total * torch.exp(top - new) + torch.exp(block - new[:, None]).sum(1)
        top = new
    return top, total


def softmax_in_blocks(x):
    top, total = blocks_folded(x)
    return torch.exp(x - top[:, None]) / total[:, None]


def log_sum_exp_in_blocks(x, **how):
    top, total = blocks_folded(x, **how)
    return top + total.log()


def test_the_maximum_of_the_first_block_is_refused_on_every_seed():
    book = large_book("torch.softmax(x, 1)", "torch.rand(12, 100)")
    honest, wrong = [], []
    for case in book:
        draw, (golden,) = book.materialise(case)
        (x,) = draw.inputs
        honest.append(gate(softmax_in_blocks(x), golden, case.bounds[0]).passed)
        wrong.append(gate(softmax_of_first_block(x), golden, case.bounds[0]).passed)
    assert honest == [True] * len(SEEDS)
    assert wrong == [False] * len(SEEDS)


def test_an_honest_softmax_in_blocks_passes_all_profiles():
    book = book_of("torch.softmax(x, 1)", "torch.rand(12, 100)")
    assert refused_on(book, softmax_of_first_block) == {"large", "far"}
    assert refused_on(book, softmax_in_blocks) == set()


def test_the_maximum_of_each_block_is_refused_on_every_seed():
    book = large_book("torch.logsumexp(x, 1)", "torch.randn(3, 83)")
    for case in book:
        draw, (golden,) = book.materialise(case)
        (x,) = draw.inputs
        assert gate(log_sum_exp_in_blocks(x), golden, case.bounds[0]).passed
        forgets = log_sum_exp_in_blocks(x, keeps_maximum=False)
        assert not gate(forgets, golden, case.bounds[0]).passed


def begins_at(name, dim):
    """Return a reduction whose extremum begins at 10 or -10 instead of infinity."""

    def candidate(x):
        value, index = (x.max if name.endswith("max") else x.min)(dim)
        beyond = value < -LARGEST if name.endswith("max") else value > LARGEST
        if name.startswith("arg"):
            return torch.where(beyond, 0, index)
        return value.clamp(min=-LARGEST) if name.endswith("max") else value.clamp(max=LARGEST)

    return candidate


@pytest.mark.parametrize("shape", ["8, 75", "4, 40, 21"])
@pytest.mark.parametrize("name", ["amax", "amin", "argmax", "argmin"])
def test_an_extremum_that_begins_at_ten_is_refused(name, shape):
    book = book_of(f"torch.{name}(x, 1)", f"torch.rand({shape})")
    assert refused_on(book, begins_at(name, 1)) == {"negative", "far"}  # whole rows of one sign
    assert refused_on(book, lambda x: getattr(torch, name)(x, 1)) == set()


def product_of_halves(x, w, *, is_scaled):
    """x @ w with x as the sum of two float16 parts, as they are or after a power of two a row."""
    largest = x.abs().amax(1, keepdim=True)
    scale = torch.exp2(torch.floor(torch.log2(largest))) if is_scaled else torch.ones_like(largest)
    high = (x / scale).half()
    low = (x / scale - high.float()).half()
    return (high.float() @ w + low.float() @ w) * scale


def test_a_product_through_unscaled_float16_parts_is_refused():
    book = book_of("x @ y", "torch.rand(32, 64)", "torch.rand(64, 48)")
    assert "far" in refused_on(book, lambda x, w: product_of_halves(x, w, is_scaled=False))
    assert "far" not in refused_on(book, lambda x, w: product_of_halves(x, w, is_scaled=True))
    assert refused_on(book, lambda x, w: w.mT.matmul(x.mT).mT) == set()


PRODUCT = ("torch.rand(128, 256)", "torch.rand(256, 64)")


def in_eight_parts(x, w):
    """x @ w as the sum of eight products over parts of the inner dimension."""
    pairs = zip(x.chunk(8, 1), w.chunk(8, 0), strict=True)
    return sum(a @ b for a, b in pairs)


def test_an_honest_product_passes_far_values_on_every_seed():
    book = CaseBook(build_reference(forward("torch.relu(x @ y)", *PRODUCT)), "nominal")
    for seed in range(20):
        book.add("far", seed, cache_bytes=1 << 26)
    assert refused_on(book, lambda x, w: torch.relu(in_eight_parts(x, w))) == set()
    assert refused_on(book, lambda x, w: torch.relu(x.half().float() @ w)) == {"far"}


@pytest.mark.parametrize(
    ("body", "is_full"),
    [
        ("x @ y", True),
        ("torch.relu(x @ y)", True),
        ("(x @ y).sum()", True),
        ("x[:, :64] * 2 + y[:128]", True),
        ("torch.tanh(x @ y)", False),
        ("torch.softmax(x @ y, 1)", False),
        ("torch.clamp(x @ y, -1, 1)", False),
    ],
)
def test_far_values_judge_precision_only_where_many_elements_carry_the_error(body, is_full):
    reference = build_reference(forward(body, *PRODUCT))
    assert "far" in reference.profiles
    assert reference.rigour("far", 0) is (Rigour.FULL if is_full else Rigour.GROSS)
    assert any("gross errors only: nearly all" in note for note in reference.notes) != is_full


@pytest.mark.parametrize("body", ["torch.tanh(x @ self.w)", "torch.sigmoid(x @ self.w)"])
def test_a_few_elements_that_are_not_saturated_judge_no_honest_kernel(body):
    weight = "self.w = torch.nn.Parameter(torch.rand(256, 64) / 8)"
    reference = build_reference(forward(body, "torch.rand(512, 256)", init=weight))
    assert reference.rigour("far", 0) is Rigour.GROSS


@pytest.mark.parametrize("name", ["softmax", "sigmoid"])
def test_overflow_shows_behind_what_saturates_and_precision_does_not(name):
    """Float16 parts of values over 131,008 are infinite, and what they leave is NaN."""
    options = {"softmax": {"dim": 1}, "sigmoid": {}}[name]
    weight = "self.w = torch.nn.Parameter(torch.randn(64, 48))"
    told = ", ".join(f"{key}={value}" for key, value in options.items())
    body = f"torch.{name}(torch.matmul(x, self.w){', ' if told else ''}{told})"
    book = book_of_weights(body, "torch.rand(32, 64)", weight)

    def kernel(x, w, **how):
        return getattr(torch, name)(product_of_halves(x, w, **how), **options)

    assert "far" in refused_with(book, lambda x, w: kernel(x, w, is_scaled=False))
    assert "far" not in refused_with(book, lambda x, w: kernel(x, w, is_scaled=True))
    coarse = refused_with(
        book, lambda x, w: getattr(torch, name)(x.bfloat16().float() @ w, **options)
    )
    assert coarse
    assert "far" not in coarse


def test_each_output_has_its_own_rules():
    weight = "self.w = torch.nn.Parameter(torch.randn(64, 48))"
    body = "(x @ self.w, torch.softmax(x @ self.w, 1))"
    reference = build_reference(forward(body, "torch.rand(32, 64)", init=weight))
    assert [reference.rigour("far", i) for i in (0, 1)] == [Rigour.FULL, Rigour.GROSS]
    assert reference.rigour("normal", 1) is Rigour.FULL


def test_what_gets_bad_in_eager_too_is_in_no_declared_tolerance_and_the_audit_says_so():
    """A few wrong zeros pass behind a clamp of far values, for the gate and the audit alike."""
    book = CaseBook(build_reference(forward("torch.clamp(x, 0, 1)", "torch.rand(2100, 2048)")), "n")
    book.add("far", 3, cache_bytes=1 << 28)
    (case,) = book
    _, (golden,) = book.materialise(case)
    other = golden.float()
    other[:4] = 1 - other[:4]  # 0.2 % of all, where the audit looks first
    assert gate(other, golden, case.bounds[0]).passed
    assert not _fails_at_a_glance(other, golden, case.bounds[0])
    case.bounds[0].rigour = Rigour.FULL
    assert not gate(other, golden, case.bounds[0]).passed
    assert _fails_at_a_glance(other, golden, case.bounds[0])


def test_far_values_alone_make_no_problem_decidable():
    """Zeros but for rounding on all other values; overflow is no evidence of a right result."""
    with pytest.raises(ProblemError, match="no values can tell"):
        build_reference(forward("(x - x.mean()) * 1e-30 * 1e-30", "torch.rand(64, 64)"))


def test_float16_is_given_no_values_that_it_does_not_hold():
    reference = build_reference(forward("torch.sigmoid(x)", "torch.rand(64, 64).half()"))
    assert "far" not in reference.profiles
    assert any("float16, which input x has" in note for note in reference.notes)


def test_the_share_at_the_ends_is_counted():
    assert end_share(torch.tensor([0.0, 1.0, 1.0, -2.0, 0.5])) == 0.8
    assert end_share(torch.tensor([])) == 0
    assert end_share(torch.linspace(1, 2, 100)) == 0.02


def test_errors_of_a_few_elements_are_told():
    few, many = torch.linspace(1, 2, 4096), torch.linspace(1, 2, 4096)
    few[5] += 1e-3
    many += 1e-6 * torch.randn(4096, generator=torch.Generator().manual_seed(1))
    golden = torch.linspace(1, 2, 4096)
    assert "carry the error" in concentrated(0, few, golden)
    assert concentrated(0, many, golden) is None


def test_carriers_are_counted():
    exact = torch.zeros(1000)
    one, many = exact.clone(), torch.full((1000,), -3.0)
    one[7] = 1e-30
    normal = torch.randn(100_000, generator=torch.Generator().manual_seed(1))
    assert error_carriers(exact, exact) == 0
    assert error_carriers(one, exact) == pytest.approx(1)
    assert error_carriers(many, exact) == pytest.approx(1000)
    assert error_carriers(normal, torch.zeros(100_000)) == pytest.approx(100_000 / 3, rel=0.1)
    one[8] = float("inf")
    assert error_carriers(one, exact) == pytest.approx(1)


def variance_in_one_pass(x):
    return (x * x).mean((0, 2)) - x.mean((0, 2)) ** 2


def test_a_variance_in_one_pass_over_the_first_dimension_is_refused():
    book = book_of("x.var((0, 2), unbiased=False)", "torch.rand(16, 48, 24)")
    assert "positive_mean" in refused_on(book, variance_in_one_pass)
    assert refused_on(book, lambda x: x.var((0, 2), unbiased=False)) == set()


def test_a_sum_over_the_first_dimension_without_its_first_row_is_refused():
    book = book_of("x.sum(0)", "torch.rand(512, 8)")
    assert "positive_mean" in refused_on(book, lambda x: x[1:].sum(0))


def cosine(x, y, *, padding=0.0):
    x = torch.nn.functional.pad(x, (0, 5), value=padding)
    y = torch.nn.functional.pad(y, (0, 5), value=padding)
    return (x * y).sum(1) / (x.norm(dim=1).clamp(min=1e-8) * y.norm(dim=1).clamp(min=1e-8))


def test_a_padding_of_a_thousandth_is_refused():
    book = book_of(
        "torch.nn.functional.cosine_similarity(x, y, dim=1)",
        "torch.rand(8, 43)",
        "torch.rand(8, 43)",
    )
    refused = refused_on(book, lambda x, y: cosine(x, y, padding=1e-3))
    assert "negative" in refused
    assert refused_on(book, cosine) == set()


@pytest.mark.parametrize("sign", [1, -1])
def test_half_of_the_rows_have_one_spike_and_both_halves_of_a_row_do(sign):
    x = torch.empty(64, 100)
    fill(x, "large", torch.Generator().manual_seed(1), Reach())
    far = (x.abs() >= 8 * LARGE_SCALES[0]).sum(1)
    assert far.tolist() == [1, 0] * 32
    at = (sign * x >= 8 * LARGE_SCALES[0]).nonzero()[:, 1]
    assert int((at < 50).sum()) == int((at >= 50).sum()) == 8


def test_one_row_keeps_plain_values_and_short_rows_have_no_spike():
    x = torch.empty(1, 100)
    fill(x, "negative", torch.Generator().manual_seed(1), Reach())
    assert -2 <= float(x.min()) < float(x.max()) <= -1
    short = torch.empty(10_000, 8)
    fill(short, "large", torch.Generator().manual_seed(1), Reach())
    assert float(short.abs().max()) < 8 * LARGE_SCALES[0]


def test_values_go_as_far_as_the_reference_bears():
    def reach_of(body):
        reference = build_reference(forward(body, "torch.rand(8, 64) + 1"))
        assert "negative" in reference.profiles
        return reference.reach.factors

    assert reach_of("x.sum(1)") == FACTORS[0]
    assert reach_of("torch.cumprod(x, 1)") == FACTORS[-1]  # 24 ** 64 overflows
    without = build_reference(forward("torch.acosh(x)", "torch.rand(8, 64) + 1"))
    assert set(without.profiles) == {"shipped", "positive_mean"}
    raw = build_reference(forward("torch.exp(x)", "torch.rand(6, 64)"))
    assert raw.reach.scale == 8
    assert "large" in raw.profiles
