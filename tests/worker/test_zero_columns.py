"""Columns of 0: a norm over all rows that has no epsilon is refused, others pass."""

import pytest
import torch
from seeded_verdicts import SEEDS, book_of, built, passed

from hotloop.worker.apart import columns

EPS = 1e-12


def squares(x, dim):
    return (x * x).sum(dim, keepdim=True)


def in_parts(x, dim):
    """The sum of squares in four parts."""
    return sum(squares(part, dim) for part in x.chunk(4, dim))


HONEST = [
    lambda x, d: x / squares(x, d).sqrt().clamp(min=EPS),
    lambda x, d: x * torch.rsqrt(squares(x, d).clamp(min=EPS**2)),
    lambda x, d: x * (1 / in_parts(x, d).sqrt().clamp(min=EPS)),
]
WRONG = [
    lambda x, d: x * torch.rsqrt(squares(x, d)),
    lambda x, d: x / squares(x, d).sqrt(),
    lambda x, d: x / in_parts(x, d).sqrt(),
]


@pytest.mark.parametrize(("shape", "dim"), [("256, 96", 0), ("1, 96", 0), ("1, 16, 64", 1)])
def test_a_norm_over_all_rows_needs_its_epsilon(shape, dim):
    body = f"torch.nn.functional.normalize(x, dim={dim})"
    reference = built(body, f"torch.randn({shape})")
    assert reference.reach.zero_columns
    book = book_of(reference, "negative")
    assert [passed(book, lambda x, k=k: k(x, dim)) for k in HONEST] == [len(SEEDS)] * 3
    assert [passed(book, lambda x, k=k: k(x, dim)) for k in WRONG] == [0] * 3


@pytest.mark.parametrize(
    "body",
    [
        "x / x.norm(dim=0)",  # no result for a column of 0
        "torch.nn.functional.normalize(x, dim=1)",  # a row of 0 shows it
        "x / (x.amax(0) + x.norm(dim=0) + 1)",  # a row of -1 and less has maxima
        "x * 2",
    ],
)
def test_there_are_none_where_they_show_nothing_or_are_not_borne(body):
    reference = built(body, "torch.randn(64, 96)")
    assert "negative" in reference.profiles
    assert not reference.reach.zero_columns
    assert bool(reference.draw(1, "negative").inputs[0].any(0).all())


def test_one_column_of_eight_is_taken():
    assert columns(torch.zeros(4, 24)).shape == (4, 3)
    assert columns(torch.zeros(4, 3)).numel() == columns(torch.zeros(())).numel() == 0
