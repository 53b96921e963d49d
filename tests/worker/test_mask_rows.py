"""Masks that leave one end of a row: a block of nothing in a row that is not empty."""

import math

import pytest
import torch
from seeded_verdicts import SEEDS, book_of, built, passed

from hotloop.worker.mask_rows import EMPTY, FULL, PADDED, ROWS, make_rows

BLOCK = 16
X, MASK = "torch.randn(32, 256)", "torch.rand(32, 256) > 0.5"
SOFTMAX = "torch.softmax(x.masked_fill({}, -torch.inf), 1)"


def online(x, *, is_guarded):
    """A softmax block by block; unguarded, a first block of nothing is -inf less -inf."""
    top = torch.full_like(x[:, :1], -math.inf)
    total = torch.zeros_like(top)
    for block in x.split(BLOCK, 1):
        new = torch.maximum(top, block.amax(1, keepdim=True))
        base = torch.where(new == -math.inf, 0, new) if is_guarded else new
        total = total * torch.exp(top - base) + torch.exp(block - base).sum(1, keepdim=True)
        top = new
    return torch.exp(x - top) / total


def plain(x):
    e = torch.exp(x - x.amax(1, keepdim=True))
    return e / e.sum(1, keepdim=True)


def exp2(x):
    scores = x * 1.4426950408889634
    e = torch.exp2(scores - scores.amax(1, keepdim=True))
    return e / e.sum(1, keepdim=True)


@pytest.mark.parametrize("is_left_out", [False, True])
def test_a_block_of_nothing_is_refused_where_it_makes_nan(is_left_out):
    reference = built(SOFTMAX.format("y" if is_left_out else "~y"), X, MASK)
    kinds = reference.reach.masked["normal"]
    assert kinds == PADDED | {EMPTY if is_left_out else FULL}
    book = book_of(reference, "normal")

    def run(softmax):
        return passed(
            book, lambda x, y: softmax(x.masked_fill(y if is_left_out else ~y, -math.inf))
        )

    honest = (plain, exp2, lambda x: online(x, is_guarded=True))
    assert [run(softmax) for softmax in honest] == [len(SEEDS)] * len(honest)
    assert run(lambda x: online(x, is_guarded=False)) == 0


@pytest.mark.parametrize("count", ["y.sum(1).clamp(min=1)", "y.sum(1)"])
def test_rows_of_half_are_no_longer_all_that_a_count_sees(count):
    reference = built(f"(x * y).sum(1) / {count}", X, MASK)
    assert (EMPTY in reference.reach.masked["normal"]) == ("clamp" in count)
    book = book_of(reference, "normal")
    assert passed(book, lambda x, y: (x * y).sum(1) / y.sum(1).clamp(min=1)) == len(SEEDS)
    by_blocks = passed(
        book, lambda x, y: (x * y).view(32, -1, BLOCK).sum(2).sum(1) / y.sum(1).clamp(min=1)
    )
    assert by_blocks == len(SEEDS)
    assert passed(book, lambda x, y: (x * y).sum(1) / 128) == 0


def test_a_maximum_of_what_is_left_passes():
    book = book_of(built("x.masked_fill(~y, -1e9).amax(1)", X, MASK), "normal")
    assert passed(book, lambda x, y: torch.where(y, x, -1e9).amax(1)) == len(SEEDS)
    assert passed(book, lambda x, y: torch.where(y, x, 0).amax(1)) == 0


def test_rows_are_of_their_kind():
    mask = torch.rand(16, 24, generator=torch.manual_seed(1)) > 0.5
    before = mask.clone()
    make_rows(mask, PADDED | {EMPTY, FULL})
    end = torch.zeros(24, dtype=torch.bool)
    end[:3] = True
    want = [None, ~end & end, ~end | end, end.flip(0), end, ~end.flip(0), ~end]
    told = dict(zip(("", EMPTY, FULL, "last", "first", "not last", "not first"), want, strict=True))
    for i, kind in enumerate(ROWS * 2):
        assert torch.equal(mask[i], before[i] if told[kind] is None else told[kind])


@pytest.mark.parametrize("shape", [(24,), (4, 24), (2, 1, 24)])
def test_masks_of_few_rows_stay_as_they_are(shape):
    mask = torch.ones(shape, dtype=torch.bool)
    make_rows(mask, PADDED | {EMPTY, FULL})
    assert bool(mask.all())


def test_short_rows_have_no_ends():
    mask = torch.rand(16, 4, generator=torch.manual_seed(1)) > 0.5
    before = mask.clone()
    make_rows(mask, PADDED)
    assert torch.equal(mask, before)
