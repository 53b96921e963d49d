"""Tiles of a few values, members that are exact by luck, far values that eager bears badly."""

import pytest
import torch
from problem_files import forward

from hotloop.worker import reordered, sequential
from hotloop.worker.cases import CaseBook
from hotloop.worker.compare import TILE, Rigour, gate, make_bound
from hotloop.worker.error_stats import error_stats
from hotloop.worker.reference import build_reference
from hotloop.worker.tile_few import FEW

TILES = 64
ROUNDING = 1e-6


def generator(seed):
    return torch.Generator().manual_seed(seed)


class Rectified:
    """max(sums, 0): most tiles are half zeros, one has `left` elements that are not."""

    def __init__(self, left, largest=None):
        self.left = left
        sums = torch.randn(TILES, TILE, generator=generator(0), dtype=torch.float64)
        sums[7] = -1.0 - sums[7].abs()
        sums[7, :left] = 3 * ROUNDING
        if largest is not None:
            sums[7, 0] = largest
        self.sums = sums
        self.golden = sums.clamp(min=0)
        members = [self.implementation(seed) for seed in (1, 2, 3)]
        for member in members:
            member[7] = self.golden[7].float()  # lucky there
        self.bound = make_bound(self.golden, members, torch.float32, exact=False)

    def implementation(self, seed):
        errors = torch.randn(TILES, TILE, generator=generator(seed), dtype=torch.float64)
        return (self.sums + ROUNDING * errors).clamp(min=0).float()


@pytest.mark.parametrize("left", [1, 2, 5])
def test_a_tile_of_a_few_sums_may_have_their_rounding(left):
    case = Rectified(left)
    output = case.implementation(4)
    assert error_stats(output, case.golden).tile_sum_sq[7].sqrt() > case.bound.tile_limit[7]
    assert gate(output, case.golden, case.bound).passed


def test_a_tile_of_zeros_may_have_one_sum_on_the_other_side():
    case = Rectified(0)
    output = case.implementation(4)
    output[7, 100] = 2 * ROUNDING
    assert case.bound.tile_limit[7] == 0
    assert gate(output, case.golden, case.bound).passed


WRONG = [
    "far off",
    "more than sixteen",
    "broad",
    "zeros in a full tile",
    "outlier in a full tile",
    "zeros beside one large value",
]


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_more_than_a_few_values_or_more_than_rounding_is_refused(wrong):
    case = Rectified(300 if "full" in wrong or "large" in wrong else 2)
    if "large" in wrong:
        case = Rectified(300, largest=1e-3)
    output = case.implementation(4)
    honest = output[7].clone()
    outlier = 0.9 * case.bound.envelope_max
    if wrong == "zeros beside one large value":
        output[7] = case.golden[7].float()
        output[7, 1:17] = 0
    elif wrong == "far off":
        output[7, 0] = case.golden[7, 0] + 1.1 * case.bound.envelope_max
    elif wrong == "more than sixteen":
        output[7, 100:140] = ROUNDING
    elif wrong == "broad":
        output[7, 0] = case.golden[7, 0] + outlier
        output[7, 1:] += 1e-3 * outlier
    elif wrong == "zeros in a full tile":
        output[7] = 0
    else:
        output[7] = case.golden[7].float()
        output[7, :4] += outlier
        output[7, 4:300] += 0.03 * outlier
    result = gate(output, case.golden, case.bound)
    assert (result.rule, result.bad_tiles) == ("tile", 1)
    output[7] = honest
    assert gate(output, case.golden, case.bound).passed == (case.left < FEW)


def test_luck_is_rare():
    """Of 256 tiles two may be lucky, and no third."""
    golden = torch.ones(256, TILE, dtype=torch.float64)
    golden[:8] = 0
    member = golden.float()
    member[8:, 0] += 1e-5
    bound = make_bound(golden, [member], torch.float32, exact=False)
    output = member.clone()
    for count, passes in ((1, True), (2, True), (3, False)):
        output[:count, 0] = 1e-6
        assert gate(output, golden, bound).passed == passes


def test_a_short_last_tile_has_no_few_values():
    golden = torch.ones(4 * TILE + 15, dtype=torch.float64)
    golden[4 * TILE :] = 1e-6
    member = golden.float()
    member[: 4 * TILE] += 1e-5
    bound = make_bound(golden, [member], torch.float32, exact=False)
    assert gate(member, golden, bound).passed
    member[4 * TILE :] = 0
    assert gate(member, golden, bound).rule == "tile"


def test_equal_scores_have_an_error_in_some_member():
    """Exponentials of 0 add up without one, whatever the order: a kernel with a bound has one."""
    scores = torch.full((2, 1 << 17), -0.03)
    weights = torch.exp2((scores - 1) * 1.4426950408889634)
    total = torch.zeros(2, 512)
    for part in weights.view(2, 256, 512).unbind(1):
        total += part
    honest = weights / total.sum(1, keepdim=True)
    golden = torch.softmax(scores.double(), 1)
    members = [torch.softmax(scores, 1), *(m.softmax(scores, 1) for m in (sequential, reordered))]
    bound = make_bound(golden, members, torch.float32, exact=False)
    assert gate(honest, golden, bound).passed
    assert not gate(
        honest, golden, make_bound(golden, members[:1], torch.float32, exact=False)
    ).passed
    assert not gate(honest * (1 + 2.0**-16), golden, bound).passed


LAYERS = (
    "self.norm, self.w = torch.nn.GroupNorm(1, 32), torch.nn.Parameter(torch.randn(16, 32) / 128)"
)


@pytest.mark.parametrize(
    ("body", "is_rough"),
    [
        ("torch.sin(x @ self.w)", True),
        ("self.norm(x @ self.w)", False),
        ("torch.nn.functional.silu(x @ self.w)", False),
    ],
)
def test_far_values_that_eager_bears_badly_refuse_gross_errors_only(body, is_rough):
    """A sine of 1e3 has lost three digits in each element; no end, no few carriers tell it."""
    reference = build_reference(forward(body, "torch.rand(256, 16)", init=LAYERS))
    assert "far" in reference.profiles
    rigour = Rigour.ROUGH if is_rough else Rigour.FULL
    assert reference.rigour("far", 0) is rigour
    alone = forward(body, "torch.rand(256, 16)", init=LAYERS)
    alone.only_profiles = ("far",)
    assert build_reference(alone).rigour("far", 0) is rigour
    assert any("has wider bounds" in note for note in reference.notes) == is_rough
    book = CaseBook(reference, "nominal")
    book.add("far", 5, cache_bytes=1 << 26)
    (case,) = book
    draw, (golden,) = book.materialise(case)
    (bound,) = case.bounds
    eager = reference.eager(draw)[0]
    passing, refused = (4, 40) if is_rough else (1, 12)
    for times in (passing, refused):
        worse = (golden + times * (eager - golden)).float()
        assert gate(worse, golden, bound).passed == (times == passing)
    eager[3, 3] = torch.nan
    assert gate(eager, golden, bound).rule == "nonfinite"
    book.add_like(case, 6)
    assert book.cases[1].bounds[0].rigour is rigour
