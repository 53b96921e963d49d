"""Tiles with a few values: what is off there is rounding's luck, not a wrong tile.

Behind a ReLU of negative sums a tile of 16,384 elements may have one that is not 0. Its RMSE is
then the rounding of one sum, |N(0, 1)| times what is usual, and where a legitimate implementation
has a sum on the other side of 0, the tile of zeros has an error that no member has. The law of
tiles knows neither: neighbours in size may be full tiles of small values. So a tile beyond its
limit is passed when all of this holds:

    under 16 values of g            all others are 0, but for float32's epsilon of the largest
    max|e|  <=  max|b - g|          no element is off by more than a member of the envelope is
    the rest of e within the limit  without its 16 largest errors the tile is within its limit
    at most 1 % of the tiles        one always may; a last tile of under 1,024 elements never

What passes is up to 16 elements, each off by no more than the rounding of the output's largest
sums, in a tile that holds no more values than that. A tile with more values is never excused: off
by as much as the largest sums round, small values may be wrong altogether.
"""

from __future__ import annotations

import torch

from hotloop.worker.error_stats import TILE, same_nonfinite

FEW = 16
RARE_FRAC = 0.01
LEAST = 1024
"""Elements of a tile in which 16 are a few."""


def without_few(
    beyond: torch.Tensor,
    candidate: torch.Tensor,
    golden: torch.Tensor,
    *,
    limits: torch.Tensor,
    largest: float,
) -> torch.Tensor:
    """Return `beyond` without the tiles that have a few values, where these are rare.

    Args:
        beyond: bool, one a tile: those that are beyond their limit.
        candidate: any shape and floating dtype, `TILE` elements a tile but for the last.
        golden: of the same shape.
        limits: square root of the sum of squares that each tile may have.
        largest: the envelope's largest error.
    """
    tiles = beyond.nonzero()[:, 0].tolist()
    if not tiles or len(tiles) > max(1, int(RARE_FRAC * beyond.numel())):
        return beyond
    flat_c, flat_g = candidate.reshape(-1), golden.reshape(-1)
    left = beyond.clone()
    for tile in tiles:
        part = slice(tile * TILE, (tile + 1) * TILE)
        error = _error(flat_c[part], flat_g[part])
        few = error.numel() >= LEAST and _values(flat_g[part]) < FEW
        left[tile] = not (few and _is_luck(error, float(limits[tile].item()), largest))
    return left


def _error(candidate: torch.Tensor, golden: torch.Tensor) -> torch.Tensor:
    error = (candidate.double() - golden.double()).abs()
    return torch.where(same_nonfinite(candidate, golden), torch.zeros_like(error), error)


def _values(golden: torch.Tensor) -> int:
    """Count what is not 0 beside the largest; one large value hides no small ones."""
    size = golden.double().abs().nan_to_num(0.0, posinf=0.0)
    return int((size > torch.finfo(torch.float32).eps * size.max()).sum().item())


def _is_luck(error: torch.Tensor, limit: float, largest: float) -> bool:
    rest = error.sort(descending=True).values
    return float(rest[0].item()) <= largest and float(rest[FEW:].norm().item()) <= limit
