"""Rows far apart in size that share a tile of the gate are judged each by their own size."""

import pytest
import torch
from problem_files import forward

from hotloop.worker.apart import borders
from hotloop.worker.cases import CaseBook
from hotloop.worker.compare import gate
from hotloop.worker.correctness import case_result
from hotloop.worker.diagnosis import Wrong
from hotloop.worker.known_case import Known
from hotloop.worker.mismatch import describe_mismatch
from hotloop.worker.part_rule import Part, beyond_limits, used_limits
from hotloop.worker.reference import build_reference
from hotloop.worker.row_errors import MOST, PART, RowErrors
from hotloop.worker.scale_free import is_scale_free

SEEDS = range(3)
PRODUCTS = {
    "a column": (512, 256, 1),
    "a small batch": (32, 256, 256),
    "vectors": (256, 64, 0),
}
"""Rows, inner, columns; of no columns the weight is a vector and so is the output."""


def book_of(loaded, profile="negative"):
    reference = build_reference(loaded)
    assert profile in reference.profiles
    book = CaseBook(reference, "nominal")
    for seed in SEEDS:
        book.add(profile, seed, cache_bytes=1 << 28)
    return book


def known_of(book):
    return [Known(book.reference, case, *book.materialise(case)) for case in book]


def rules(book, kernel):
    """Return the rule that refuses a kernel of inputs and state on each draw; None: it passes."""
    found = []
    for known in known_of(book):
        output = kernel(*known.draw.inputs, known.draw.state)
        result = known.judge(0, output.to(known.case.bounds[0].dtype))
        found.append(None if result.passed else result.rule)
    return found


@pytest.fixture(scope="module", params=list(PRODUCTS))
def products(request):
    rows, inner, columns = PRODUCTS[request.param]
    shape = f"{inner}, {columns}" if columns else f"{inner}"
    init = f"self.w = torch.nn.Parameter(torch.randn({shape}))"
    return book_of(forward("x @ self.w", f"torch.rand({rows}, {inner})", init=init))


def in_halves(x, scale):
    high = (x / scale * 2.0**10).half().float()
    low = (x / scale * 2.0**10 - high).half().float()
    return (high + low) * (scale * 2.0**-10)


def by_tiles(x, state, rows):
    """Float16 parts of x after one power of two for so many rows is taken out."""
    tops = torch.cat([t.abs().amax().expand(len(t), 1) for t in x.split(rows)])
    smallest = torch.finfo(torch.float32).tiny
    return in_halves(x, torch.exp2(torch.floor(torch.log2(tops.clamp(min=smallest))))) @ state["w"]


def one_small_row(x, state):
    """One small row alone loses its bits."""
    out = x @ state["w"]
    out[2] = by_tiles(x, state, len(x))[2]
    return out


HONEST = {
    "a scale a row": lambda x, state: by_tiles(x, state, 1),
    "backwards": lambda x, state: x.flip(1) @ state["w"].flip(0),
    "in four runs": lambda x, state: sum(
        a @ b for a, b in zip(x.chunk(4, 1), state["w"].chunk(4, 0), strict=True)
    ),
    "a product at a time": lambda x, state: sum(
        (x[:, k, None] * state["w"][k]).reshape(len(x), *state["w"].shape[1:])
        for k in range(x.shape[1])
    ),
    "exact": lambda x, state: x.double() @ state["w"].double(),
}
CHEATS = {
    "one scale for all": lambda x, state: by_tiles(x, state, len(x)),
    "one small row": one_small_row,
    "small values taken for 0": lambda x, state: torch.where(x.abs() < 1e-6, 0, x) @ state["w"],
    "zeros taken for small values": lambda x, state: x.where(x != 0, 1e-9) @ state["w"],
}


@pytest.mark.parametrize("name", list(HONEST))
def test_any_order_of_a_product_passes_on_every_draw(products, name):
    assert rules(products, HONEST[name]) == [None] * len(SEEDS)


@pytest.mark.parametrize("name", list(CHEATS))
def test_what_large_rows_hide_is_refused_on_every_draw(products, name):
    for known in known_of(products):
        output = CHEATS[name](*known.draw.inputs, known.draw.state)
        assert gate(output, known.goldens[0], known.case.bounds[0]).passed  # they do hide it
    assert rules(products, CHEATS[name]) == [PART] * len(SEEDS)


@pytest.fixture(scope="module")
def layer():
    """A case of a small linear layer."""
    init = "self.w = torch.nn.Parameter(torch.randn(64, 32))"
    return known_of(book_of(forward("x @ self.w", "torch.rand(32, 64)", init=init)))[0]


def told(known, kernel):
    """Return the evidence against a wrong kernel, and its record."""
    output = kernel(*known.draw.inputs, known.draw.state)
    golden, bound = known.goldens[0], known.case.bounds[0]
    case = case_result(known.case, 0, bound, known.judge(0, output))
    return describe_mismatch(Wrong(case, output, golden, bound)), case


def test_what_is_lost_is_told(layer):
    evidence, case = told(layer, CHEATS["one scale for all"])
    assert "small values are lost beside large ones" in evidence.message
    small_rows = borders(32, 4)[1]
    assert evidence.details["box"][0] == [0, small_rows - 1]
    assert case.worst_index[0] < small_rows


def test_what_stands_in_rows_of_zeros_is_told(layer):
    evidence, case = told(layer, CHEATS["zeros taken for small values"])
    zeros = (layer.draw.inputs[0] == 0).all(1).nonzero()[:, 0]
    assert "rows of small values are less exact than in PyTorch" in evidence.message
    assert evidence.details["box"][0] == [int(zeros[0]), int(zeros[-1])]
    assert case.worst_index[0] in zeros


ROWS = [
    ("x.sum(1)", "float32", lambda x: x.flip(1).cumsum(1)[:, -1]),
    ("x.sum(1)", "float16", lambda x: x.flip(1).cumsum(1)[:, -1]),
    ("x.norm(dim=1)", "bfloat16", lambda x: x.square().sum(1).sqrt()),
    ("(x * x).mean(1, keepdim=True)", "float32", lambda x: (x * x).sum(1, True) / 64),
    (
        "torch.nn.functional.layer_norm(x, (64,))",
        "float32",
        lambda x: (c := x - x.mean(1, keepdim=True)) * torch.rsqrt(c.square().mean(1, True) + 1e-5),
    ),
]


@pytest.mark.parametrize(("body", "dtype", "kernel"), ROWS)
def test_results_of_rows_pass_and_small_ones_may_not_be_left_out(body, dtype, kernel):
    book = book_of(forward(body, f"torch.rand(96, 64).to(torch.{dtype})"))
    assert rules(book, lambda x, _: kernel(x.float())) == [None] * len(SEEDS)

    def without_small(x, _):
        out = kernel(x.float())
        out[:20] = 0
        return out

    assert None not in rules(book, without_small)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_plain_tanh_passes_where_its_small_values_are_rounding(dtype):
    book = book_of(forward("x - torch.tanh(x)", f"torch.rand(96, 16).to(torch.{dtype})"))
    kernel = lambda x, _: x.float() - (2 * torch.sigmoid(2 * x.float()) - 1)  # noqa: E731
    assert rules(book, kernel) == [None] * len(SEEDS)


def test_sums_that_cross_the_parts_are_left_to_the_other_rules():
    book = book_of(forward("torch.softmax(x @ x.T, 1) @ x", "torch.rand(96, 8)"))

    def off(x, _):
        out = torch.softmax(x @ x.T, 1) @ x
        out[:8] += 1e-6 * out.abs().max()
        return out

    assert rules(book, off) == [None] * len(SEEDS)


def test_what_a_bias_hides_from_any_precision_is_not_judged():
    book = book_of(forward("x + 1", "torch.rand(96, 8)"))
    kernel = lambda x, _: torch.where(x.abs() < 2e-7, 0, x) + 1  # noqa: E731
    assert rules(book, kernel) == [None] * len(SEEDS)


def test_functions_with_a_scale_of_their_own_are_left_to_the_other_rules():
    book = book_of(forward("torch.sinh(x)", "torch.rand(96, 8)"))
    kernel = lambda x, _: (torch.exp(x) - torch.exp(-x)) / 2  # noqa: E731
    assert rules(book, kernel) == [None] * len(SEEDS)
    assert is_scale_free(["mm", "add_", "view", "native_layer_norm", "tanh"], torch.float32)
    assert is_scale_free(["mm", "add_", "view", "native_layer_norm"], torch.bfloat16)
    assert not is_scale_free(["mm", "sinh_"], torch.float32)
    assert not is_scale_free(["mm", "tanh"], torch.float16)


def test_other_values_and_large_outputs_have_no_parts():
    init = "self.w = torch.nn.Parameter(torch.randn(64, 8))"
    book = book_of(forward("x @ self.w", "torch.rand(96, 64)", init=init), "positive_mean")
    assert rules(book, lambda x, state: by_tiles(x, state, 96)) == [None] * len(SEEDS)
    assert RowErrors.of(torch.zeros(2, MOST, dtype=torch.float64)) is None
    assert RowErrors.of(torch.zeros(1, 1, dtype=torch.float64)) is None
    assert RowErrors.of(torch.zeros(4, dtype=torch.int64)) is None


def test_a_new_draw_keeps_what_the_known_one_showed():
    init = "self.w = torch.nn.Parameter(torch.randn(64, 8))"
    book = book_of(forward("x @ self.w", "torch.rand(96, 64)", init=init))
    known = next(iter(book))
    book.add_like(known, 77)
    *_, new = book
    assert new.seed == 77
    assert bool((new.bounds[0].rows.sum_sq >= known.bounds[0].rows.sum_sq).all())
    assert rules(book, HONEST["in four runs"]) == [None] * (len(SEEDS) + 1)
    assert rules(book, CHEATS["one scale for all"]) == [PART] * (len(SEEDS) + 1)


LARGE = Part(16.0, 1000, 16.0, (0.0, 0.0), (1.6e-6, 8e-6), (0.0, 0.0), 500)


def part(error, *, factor=2.0**-24, count=1000, golden=2.0**-24):
    """A part without an error of the envelope's: what it may have is a share of its size."""
    return Part(factor, count, golden, (error, error), (0.0, 0.0), (0.0, 0.0), 7)


def test_a_part_is_judged_where_results_are_as_small_as_inputs():
    wrong = 1e-5 * 2.0**-24
    assert beyond_limits([LARGE, part(wrong)]) == [7]
    assert beyond_limits([LARGE, part(1e-7 * 2.0**-24)]) == []
    assert beyond_limits([LARGE, part(float("nan"))]) == [7]
    assert beyond_limits([LARGE, part(wrong, count=15)]) == []
    for other in (
        part(1e-3, golden=0.01),
        part(1e-3, golden=4.0, factor=1.0),
        part(1.0, factor=16.0),
    ):
        assert used_limits([LARGE, other]) == []


def test_a_part_of_zeros_has_the_least_limit_of_the_others():
    small = part(0.0)
    zeros = {error: part(error, factor=0.0, golden=0.0) for error in (1e-14, 1e-12)}
    assert beyond_limits([LARGE, small, zeros[1e-14]]) == []
    assert beyond_limits([LARGE, small, zeros[1e-12]]) == [7]
    assert beyond_limits([LARGE, zeros[1e-12]]) == []
    assert used_limits([part(1.0, golden=0.0)]) == []
