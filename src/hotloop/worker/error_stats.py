"""Error statistics: how far a tensor is from its golden, as a whole and a tile at a time.

One pass in float64 over pieces of the tensor, so that no temporary has the tensor's own size. NaN
and Inf agree with the golden where the golden has the same one at the same place; such elements
count as no error, every other value that is not finite is counted.

Not here: what error is allowed (`bound.py`, `compare.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

TILE = 16384
CHUNK = TILE * 2048  # 32 Mi elements: 256 MiB of float64 temporaries


@dataclass(slots=True)
class ErrorStats:
    """How far one tensor is from its golden."""

    count: int
    sum_sq: float
    max_abs: float
    worst: int
    """Flat index of the largest error, or of the first value that is not finite."""
    nonfinite: int
    """Elements that are NaN or Inf where the golden is not the same, or the other way round."""
    tile_sum_sq: torch.Tensor
    """float64, one entry a tile of `TILE` consecutive elements."""

    @property
    def rmse(self) -> float:
        """Root mean square error; infinite when a value is not finite."""
        if self.nonfinite:
            return math.inf
        return math.sqrt(self.sum_sq / max(self.count, 1))


def error_stats(
    candidate: torch.Tensor, golden: torch.Tensor, *, at_zeros: bool = False
) -> ErrorStats:
    """Measure `candidate` against `golden`, of any dtype and the same shape, in float64.

    Args:
        candidate: what is measured.
        golden: what it should be.
        at_zeros: only where the golden is exactly 0; elsewhere there is no error.
    """
    flat_c, flat_g = candidate.reshape(-1), golden.reshape(-1)
    stats = _empty(flat_g)
    for start in range(0, stats.count, CHUNK):
        c, g = flat_c[start : start + CHUNK], flat_g[start : start + CHUNK]
        error = c.to(torch.float64) - g.to(torch.float64)  # torch subtracts no booleans
        if at_zeros:
            error.masked_fill_(g != 0, 0.0)
        _add_chunk(stats, error.abs_(), start, agreement=(c, g))
    return stats


def size_stats(golden: torch.Tensor) -> ErrorStats:
    """Measure a tensor against zero; values that are not finite count as 0."""
    return stats_of(golden, lambda part: part.to(torch.float64).abs())


def rounding_stats(golden: torch.Tensor, dtype: torch.dtype) -> ErrorStats:
    """Measure what rounding to `dtype` costs; values that are not finite count as 0."""
    return stats_of(golden, lambda part: (part.to(dtype).to(torch.float64) - part).abs_())


def stats_of(tensor: torch.Tensor, error: Callable[[torch.Tensor], torch.Tensor]) -> ErrorStats:
    """Collect `error` (float64, not negative, of the same size) over the pieces of a tensor."""
    flat = tensor.reshape(-1)
    stats = _empty(flat)
    for start in range(0, stats.count, CHUNK):
        part = flat[start : start + CHUNK]
        _add_chunk(stats, error(part), start, agreement=(part, part))
    return stats


def _empty(flat: torch.Tensor) -> ErrorStats:
    tiles = torch.zeros(-(-max(flat.numel(), 1) // TILE), dtype=torch.float64, device=flat.device)
    return ErrorStats(flat.numel(), 0.0, 0.0, 0, 0, tiles)


def _add_chunk(
    stats: ErrorStats,
    error: torch.Tensor,
    start: int,
    *,
    agreement: tuple[torch.Tensor, torch.Tensor],
) -> None:
    top = float(error.amax().item())  # NaN and Inf come through
    if not math.isfinite(top):
        error = _without_nonfinite(stats, error, start, agreement)
        top = float(error.amax().item())
    if not stats.nonfinite and top > stats.max_abs:
        stats.worst = start + int(error.argmax().item())
    stats.max_abs = max(stats.max_abs, top)
    stats.sum_sq += _add_tiles(stats.tile_sum_sq, error, start)


def _without_nonfinite(
    stats: ErrorStats,
    error: torch.Tensor,
    start: int,
    agreement: tuple[torch.Tensor, torch.Tensor],
) -> torch.Tensor:
    """Count what is not finite and does not agree; return the errors with 0 in all such places."""
    c, g = agreement
    broken = ~torch.isfinite(error)
    wrong = broken & ~same_nonfinite(c, g)
    count = int(wrong.sum().item())
    if count and not stats.nonfinite:
        stats.worst = start + int(wrong.to(torch.uint8).argmax().item())
    stats.nonfinite += count
    return torch.where(broken, torch.zeros_like(error), error)


def same_nonfinite(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return where both hold NaN, or both the same infinity."""
    return (torch.isinf(a) & (a == b)) | ((a != a) & (b != b))


def _add_tiles(tiles: torch.Tensor, error: torch.Tensor, start: int) -> float:
    squares = error.square_()
    first = start // TILE
    whole = squares.numel() // TILE
    if whole:
        tiles[first : first + whole] += squares[: whole * TILE].view(whole, TILE).sum(dim=1)
    if squares.numel() % TILE:
        tiles[first + whole] += squares[whole * TILE :].sum()
    return float(squares.sum().item())


def tile_counts(count: int, like: torch.Tensor) -> torch.Tensor:
    """Return how many elements each tile of a tensor of `count` elements has, as `like`."""
    counts = torch.full_like(like, TILE)
    counts[-1] = max(1, count - TILE * (counts.numel() - 1))
    return counts


def count_beyond(candidate: torch.Tensor, golden: torch.Tensor, limit: float) -> int:
    """Count elements further than `limit` from the golden, or not finite where it is."""
    flat_c, flat_g = candidate.reshape(-1), golden.reshape(-1)
    total = 0
    for start in range(0, flat_g.numel(), CHUNK):
        c, g = flat_c[start : start + CHUNK], flat_g[start : start + CHUNK]
        beyond = ~((c.to(torch.float64) - g.to(torch.float64)).abs_() <= limit)
        count = int(beyond.sum().item())
        if count:
            count -= int((beyond & same_nonfinite(c, g)).sum().item())
        total += count
    return total


def unravel(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index tuple of a flat position."""
    index: list[int] = []
    for size in reversed(shape):
        size = max(size, 1)  # a tensor without elements has its only position at 0
        index.append(flat % size)
        flat //= size
    return tuple(reversed(index))
