"""The gate: is a candidate's output as good as legitimate implementations are?

Errors are measured against an fp64 golden and compared with the errors of an envelope of legitimate
implementations (the worst of them), never with a fixed tolerance. Three rules, all elements:

bulk   RMSE(c - g) <= m * RMSE(b - g) + r        m = 2 for float32 and float64, 3 for 16-bit types
tail   max|c - g|  <= 4 * max|b - g| + r_max
tile   the bulk rule for every 16,384 consecutive elements with m = 4, so that one wrong tile cannot
       hide in a large tensor

`b` is the envelope, `r` the unavoidable rounding of the golden to the output dtype. The factors
follow torch's `_dynamo.utils.same` (2 and 3 times eager's error) and FlashAttention's tests. For
float32 outputs `r` is at least 4 ulp of the element (element-wise chains of transcendental
functions are that far apart in correct libraries); TF32 lies two decades above. Integers, booleans
and the `integers` profile are compared exactly.

Covered: values, NaN and Inf, every element of every output. Not covered here: shape and dtype
(`correctness.py` checks them first), conditioning (`cases.py` drops profiles whose gate is void).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from hotloop.worker.pieces import largest_abs

TILE = 16384
CHUNK = TILE * 2048  # 32 Mi elements: 256 MiB of float64 temporaries
TILE_FACTOR = 4.0
TAIL_FACTOR = 4.0
FLOAT32_ULPS = 4.0


@dataclass(slots=True)
class ErrorStats:
    """How far one tensor is from its golden."""

    count: int
    sum_sq: float
    max_abs: float
    worst: int
    """Flat index of the largest error, or of the first value that is not finite."""
    nonfinite: int
    tile_sum_sq: torch.Tensor
    """float64, one entry a tile of `TILE` consecutive elements."""

    @property
    def rmse(self) -> float:
        """Root mean square error; infinite when a value is not finite."""
        if self.nonfinite:
            return math.inf
        return math.sqrt(self.sum_sq / max(self.count, 1))


@dataclass(slots=True)
class Bound:
    """What one output may deviate by: the envelope's worst error and the rounding floor."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    exact: bool
    envelope_rmse: float
    envelope_max: float
    envelope_tile: torch.Tensor
    """Sum of squares a tile, the worst member of each tile."""
    floor_rmse: float
    floor_max: float
    floor_tile: torch.Tensor
    golden_rms: float
    golden_max: float

    @property
    def bulk_factor(self) -> float:
        """M of the bulk rule."""
        return 2.0 if self.dtype in (torch.float32, torch.float64) else 3.0

    @property
    def conditioning(self) -> float:
        """Largest envelope error as a share of the largest golden value.

        Infinite when a member of the envelope is not finite: then the bulk rule allows anything.
        """
        if not math.isfinite(self.envelope_rmse):
            return math.inf
        if self.golden_max == 0:
            return 0.0 if self.envelope_max == 0 else math.inf
        return self.envelope_max / self.golden_max


@dataclass(slots=True)
class GateResult:
    """The gate's answer for one output."""

    passed: bool
    rule: str | None
    stats: ErrorStats
    bad_tiles: int


def error_stats(candidate: torch.Tensor, golden: torch.Tensor) -> ErrorStats:
    """Measure `candidate` against `golden`, of any dtype and the same shape, in float64."""
    flat_c, flat_g = candidate.reshape(-1), golden.reshape(-1)
    count = flat_g.numel()
    tiles = torch.zeros(-(-max(count, 1) // TILE), dtype=torch.float64, device=flat_g.device)
    stats = ErrorStats(count, 0.0, 0.0, 0, 0, tiles)
    for start in range(0, count, CHUNK):
        error = flat_c[start : start + CHUNK].to(torch.float64) - flat_g[start : start + CHUNK]
        _add_chunk(stats, error.abs_(), start)
    return stats


def _add_chunk(stats: ErrorStats, error: torch.Tensor, start: int) -> None:
    top = float(error.amax().item())  # NaN and Inf come through
    if not math.isfinite(top):
        broken = ~torch.isfinite(error)
        if not stats.nonfinite:
            stats.worst = start + int(broken.to(torch.uint8).argmax().item())
        stats.nonfinite += int(broken.sum().item())
        error = torch.where(broken, torch.zeros_like(error), error)
        top = float(error.amax().item())
    if not stats.nonfinite and top > stats.max_abs:
        stats.worst = start + int(error.argmax().item())
    stats.max_abs = max(stats.max_abs, top)
    stats.sum_sq += _add_tiles(stats.tile_sum_sq, error, start)


def _add_tiles(tiles: torch.Tensor, error: torch.Tensor, start: int) -> float:
    squares = error.square_()
    first = start // TILE
    whole = squares.numel() // TILE
    if whole:
        tiles[first : first + whole] += squares[: whole * TILE].view(whole, TILE).sum(dim=1)
    if squares.numel() % TILE:
        tiles[first + whole] += squares[whole * TILE :].sum()
    return float(squares.sum().item())


def make_bound(
    golden: torch.Tensor, members: list[torch.Tensor], dtype: torch.dtype, *, exact: bool
) -> Bound:
    """Build the bound of one output from its golden and the envelope's members.

    Args:
        golden: float64 (or integer, boolean: then the comparison is exact).
        members: outputs of the legitimate implementations, same shape.
        dtype: the output's dtype.
        exact: demand equality (integer-valued profiles).
    """
    g = golden.to(torch.float64)
    floor = _floor_stats(g, dtype)
    bound = Bound(
        dtype,
        tuple(golden.shape),
        exact or not dtype.is_floating_point,
        0.0,
        0.0,
        torch.zeros_like(floor.tile_sum_sq),
        floor.rmse,
        floor.max_abs,
        floor.tile_sum_sq,
        _rms(g),
        largest_abs(g),
    )
    for member in members:
        stats = error_stats(member, g)
        bound.envelope_rmse = max(bound.envelope_rmse, stats.rmse)
        bound.envelope_max = max(bound.envelope_max, stats.max_abs)
        bound.envelope_tile = torch.maximum(bound.envelope_tile, stats.tile_sum_sq)
    return bound


def reseeded(bound: Bound, golden: torch.Tensor) -> Bound:
    """Return the bound for another draw of the same profile, without running the envelope again.

    How far legitimate implementations are off is a property of the operation and the distribution,
    tile by tile, not of one draw; the rounding floor follows the new golden.
    """
    g = golden.to(torch.float64)
    floor = _floor_stats(g, bound.dtype)
    return dataclasses.replace(
        bound,
        floor_rmse=floor.rmse,
        floor_max=floor.max_abs,
        floor_tile=floor.tile_sum_sq,
        golden_rms=_rms(g),
        golden_max=largest_abs(g),
    )


def _floor_stats(golden: torch.Tensor, dtype: torch.dtype) -> ErrorStats:
    if not dtype.is_floating_point:
        return error_stats(golden, golden)
    if dtype is torch.float32:
        eps = torch.finfo(dtype).eps
        # as if it were an error: element-wise ulps of the golden value itself
        return _stats_of(golden, lambda part: part.abs().mul_(FLOAT32_ULPS * eps))
    return _stats_of(golden, lambda part: (part.to(dtype).to(torch.float64) - part).abs_())


def _stats_of(golden: torch.Tensor, error: Callable[[torch.Tensor], torch.Tensor]) -> ErrorStats:
    flat = golden.reshape(-1)
    tiles = torch.zeros(-(-max(flat.numel(), 1) // TILE), dtype=torch.float64, device=flat.device)
    stats = ErrorStats(flat.numel(), 0.0, 0.0, 0, 0, tiles)
    for start in range(0, flat.numel(), CHUNK):
        _add_chunk(stats, error(flat[start : start + CHUNK]), start)
    return stats


def _rms(golden: torch.Tensor) -> float:
    if golden.numel() == 0:
        return 0.0
    total = sum(float(part.square().sum().item()) for part in golden.reshape(-1).split(CHUNK))
    return math.sqrt(total / golden.numel())


def gate(candidate: torch.Tensor, golden: torch.Tensor, bound: Bound) -> GateResult:
    """Judge one output. `candidate` must have the golden's shape and the bound's dtype."""
    if bound.exact:
        return _exact_gate(candidate, golden)
    stats = error_stats(candidate, golden)
    if stats.nonfinite:
        return GateResult(False, "nonfinite", stats, 0)
    limit = TILE_FACTOR * bound.envelope_tile.sqrt() + bound.floor_tile.sqrt()
    bad_tiles = int((stats.tile_sum_sq.sqrt() > limit).sum().item())
    rule = None
    if stats.rmse > bound.bulk_factor * bound.envelope_rmse + bound.floor_rmse:
        rule = "bulk"
    elif stats.max_abs > tail_limit(bound):
        rule = "tail"
    elif bad_tiles:
        rule = "tile"
    return GateResult(rule is None, rule, stats, bad_tiles)


def tail_limit(bound: Bound) -> float:
    """Return the largest deviation that one element may have."""
    return TAIL_FACTOR * bound.envelope_max + bound.floor_max


def _exact_gate(candidate: torch.Tensor, golden: torch.Tensor) -> GateResult:
    stats = error_stats(candidate, golden)
    wrong = stats.nonfinite > 0 or stats.sum_sq > 0
    return GateResult(not wrong, "exact" if wrong else None, stats, 0)


def timed_gate(candidate: torch.Tensor, trusted: torch.Tensor, bound: Bound) -> bool:
    """Judge an output of a timed call against a trusted implementation on the same inputs.

    There is no golden for the fresh inputs of a timed call. Both may be off by the envelope, so the
    triangle inequality gives the limits: those of `gate` plus one envelope and one rounding. For
    tiles it is that of the loosest tile, because the trusted values were drawn anew.
    """
    if bound.exact:
        return bool(torch.equal(candidate, trusted))
    stats = error_stats(candidate, trusted)  # widened piece by piece
    if stats.nonfinite:
        return False
    rmse = (bound.bulk_factor + 1) * bound.envelope_rmse + 2 * bound.floor_rmse
    largest = (TAIL_FACTOR + 1) * bound.envelope_max + 2 * bound.floor_max
    tile = (TILE_FACTOR + 1) * bound.envelope_tile.max().sqrt() + 2 * bound.floor_tile.max().sqrt()
    worst_tile = float(stats.tile_sum_sq.max().sqrt().item())
    return stats.rmse <= rmse and stats.max_abs <= largest and worst_tile <= float(tile.item())


def within_declared(
    candidate: torch.Tensor, golden: torch.Tensor, *, atol: float, rtol: float
) -> bool:
    """Whether |c - g| <= atol + rtol * |g| everywhere: a problem's own tolerance."""
    flat_c, flat_g = candidate.reshape(-1), golden.reshape(-1)
    for start in range(0, flat_g.numel(), CHUNK):
        g = flat_g[start : start + CHUNK].to(torch.float64)
        error = (flat_c[start : start + CHUNK].to(torch.float64) - g).abs_()
        if not bool((error <= g.abs_().mul_(rtol).add_(atol)).all().item()):
            return False
    return True


def count_beyond(candidate: torch.Tensor, golden: torch.Tensor, limit: float) -> int:
    """Count elements further than `limit` from the golden, or not finite."""
    flat_c, flat_g = candidate.reshape(-1), golden.reshape(-1)
    total = 0
    for start in range(0, flat_g.numel(), CHUNK):
        error = flat_c[start : start + CHUNK].to(torch.float64) - flat_g[start : start + CHUNK]
        total += int((~(error.abs_() <= limit)).sum().item())
    return total


def unravel(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index tuple of a flat position."""
    index: list[int] = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return tuple(reversed(index))
