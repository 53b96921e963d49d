"""Reductions in pieces say what the whole ones say, at the edges of pieces too."""

import math

import torch

from hotloop.worker.pieces import PIECE, all_finite, largest_abs


def test_reductions_in_pieces_are_exact():
    x = torch.zeros(PIECE + 3)
    x[-1] = -7
    assert largest_abs(x) == 7
    assert largest_abs(x[:0]) == 0
    assert all_finite(x)
    x[PIECE] = math.nan
    assert math.isnan(largest_abs(x))
    assert not all_finite(x)
    x[PIECE] = -math.inf
    assert largest_abs(x) == math.inf
    assert not all_finite(x)
    assert all_finite(torch.arange(3))
