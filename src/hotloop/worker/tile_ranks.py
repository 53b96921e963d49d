"""Ranks of tiles: bad luck that legitimate implementations have elsewhere.

Some values make an error that no neighbour shows: where two scores of a softmax all but tie, the
row's error is p (1 - p) times the rounding of a score, and the rows beside it, each decided by one
key, have none. The law of tiles cannot know such a tile by its size, and the few members of the
envelope are sometimes lucky in it. What they cannot be is lucky everywhere: over all tiles of about
that size, legitimate implementations have as many errors as large. So a tile beyond its limit is
passed when it is no worse than twice the envelope's tile of the same rank,

    #{tiles of the size: c >= c_t}  <=  #{tiles of the size: 2 E >= c_t}   and   c_t <= g_t / 50

c_t  the candidate's RMSE in the tile; E the envelope's worst member in each tile; twice, because a
     legitimate implementation may be off by twice the envelope (the bulk rule)
g_t  RMS of the golden in the tile
size g between half and twice the tile's, so that errors of large values excuse none of small ones
1/50 what is luck is rounding: at near ties in KernelBench 1/97 eager is off by 2 in one element of
     a row, where the RMS is 65 and a tile has 16 rows. Zeros, stale or shifted values and a dropped
     row of 64 are off by more than 10 % of a tile, rounding to 8 bits by 2 % and more: no rank
     excuses them, however ill the envelope is there

Where errors are alike in all tiles this passes none that the limit of 4 E does not pass.
"""

from __future__ import annotations

import torch

RANK_FACTOR = 2.0
SAME_SIZE = 2.0
LUCK_FRAC = 0.02
"""Of the golden's RMS in the tile: what is worse is no luck."""
AT_ONCE = 256
"""Tiles that are looked at together: 256 x 32,768 comparisons are 8 MiB."""


def beyond_rank(
    bad: torch.Tensor, errors: torch.Tensor, envelope: torch.Tensor, sizes: torch.Tensor
) -> torch.Tensor:
    """Return which tiles among `bad` are worse than the envelope's of the same rank; bool.

    Args:
        bad: bool, the tiles that are beyond their limit.
        errors: float64, the candidate's RMSE in each tile.
        envelope: float64, that of the envelope's worst member there.
        sizes: float64, RMS of the golden there.
    """
    hopeless = bad & ~(errors <= LUCK_FRAC * sizes)  # an error of NaN is none of luck either
    beyond = hopeless.clone()
    places = (bad & ~hopeless).nonzero()[:, 0]
    for start in range(0, places.numel(), AT_ONCE):
        tile = places[start : start + AT_ONCE, None]
        alike = (sizes * SAME_SIZE >= sizes[tile]) & (sizes <= SAME_SIZE * sizes[tile])
        as_bad = (alike & (errors >= errors[tile])).sum(dim=1)
        allowed = (alike & (RANK_FACTOR * envelope >= errors[tile])).sum(dim=1)
        beyond[tile[:, 0]] = as_bad > allowed
    return beyond
