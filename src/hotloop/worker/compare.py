"""The gate: is a candidate's output as good as legitimate implementations are?

Errors are measured against an fp64 golden and compared with the errors of an envelope of legitimate
implementations (the worst of them), never with a fixed tolerance. All elements are held to

nonfinite  NaN and Inf exactly where the golden has the same ones
bulk       RMSE(c - g) <= m * RMSE(b - g) + r    m = 2 for float32 and float64, 3 for 16-bit types
tail       max|c - g|  <= 4 * max|b - g| + r_max
tile       RMSE in every 16,384 consecutive elements <= max(4 * its own, F * typical) + r, so that
           one wrong tile cannot hide in a large tensor; an error that may be rounding's luck is
           held to the envelope's tile of the same rank (`tile_ranks.py`) and a tile of a few
           values may have their rounding (`tile_few.py`); in an output that holds few values among
           zeros, luck is that of the values, for all rules (`few_values.py`)

`b` is the envelope and `r` the rounding floor; `tile_law.py` says what is typical of a tile, and
`bound.py` what luck adds for outputs of a few elements. The factors follow torch's
`_dynamo.utils.same` (2 and 3 times eager's error) and FlashAttention's tests. With the floor of 4
units in the last place an element-wise float32 kernel may be 2 to 4 of them off, as is usual; TF32
lies two decades above.

Far values that eager itself bears badly (`admission.py`) are there for overflow, not for precision.
They have no rule for tiles and four times the envelope; where a few elements carry eager's error,
only the first rule and

gross      elements off by over half the golden's spread <= 4 times the envelope's, 1 and 0.4 %

Parts of an output of few tiles that differ by the scale of their inputs are held to their own size
too (`part_rule.py`).

Integers, booleans and the `integers` profile are compared exactly, but for ties of an arg-reduction
(`ties.py`) and for what rounding moves from one whole number to the next (`steps.py`).

Covered: values, NaN and Inf, every element of every output. Not covered here: shape and dtype
(`correctness.py` checks them first), conditioning (`cases.py` drops profiles whose gate is void).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from hotloop.worker.bound import Bound, Rigour, make_bound, reseeded
from hotloop.worker.error_stats import (
    CHUNK,
    TILE,
    ErrorStats,
    count_beyond,
    error_stats,
    same_nonfinite,
    tile_counts,
    unravel,
)
from hotloop.worker.gross import gross_errors, most_gross
from hotloop.worker.tile_few import without_few
from hotloop.worker.tile_ranks import beyond_rank

__all__ = [
    "CHUNK",
    "TILE",
    "Bound",
    "ErrorStats",
    "GateResult",
    "Rigour",
    "count_beyond",
    "error_stats",
    "gate",
    "make_bound",
    "reseeded",
    "tail_limit",
    "timed_gate",
    "unravel",
    "within_declared",
]


@dataclass(slots=True)
class GateResult:
    """The gate's answer for one output."""

    passed: bool
    rule: str | None
    stats: ErrorStats
    bad_tiles: int
    beyond: torch.Tensor | None = None
    """bool, one a tile: those that failed, where the rule is `tile`."""
    is_cut: bool = False
    """It passed without what cutting operands to TF32 did (`tf32_cut.py`); `stats` are with it."""


def gate(candidate: torch.Tensor, golden: torch.Tensor, bound: Bound) -> GateResult:
    """Judge one output. `candidate` must have the golden's shape and the bound's dtype."""
    if bound.exact:
        return _exact_gate(candidate, golden)
    stats = error_stats(candidate, golden)
    if stats.nonfinite:
        return GateResult(False, "nonfinite", stats, 0)
    if bound.rigour is Rigour.GROSS:
        beyond = gross_errors(candidate, golden, bound.spread) > most_gross(
            bound.gross, stats.count
        )
        return GateResult(not beyond, "gross" if beyond else None, stats, 0)
    result = _held_to(bound, stats, candidate, golden)
    if not result.passed and _is_luck_of_few(bound, stats, candidate, golden):
        return GateResult(True, None, stats, 0)
    return result


def _held_to(
    bound: Bound, stats: ErrorStats, candidate: torch.Tensor, golden: torch.Tensor
) -> GateResult:
    """Judge one output by the rules on the size of errors."""
    bad = stats.tile_sum_sq.sqrt() > bound.tile_limit
    bad_tiles = int(bad.sum().item())
    rule, failed = None, None
    if stats.rmse > bound.bulk_factor * bound.envelope_rmse + bound.floor_rmse:
        rule = "bulk"
    elif stats.max_abs > tail_limit(bound):
        rule = "tail"
    elif bound.rigour is Rigour.ROUGH:
        bad_tiles = 0
    elif bad_tiles:
        beyond = _beyond_rank(bad, stats, bound)
        beyond = without_few(
            beyond, candidate, golden, limits=bound.tile_limit, largest=bound.envelope_max
        )
        bad_tiles = int(beyond.sum().item())
        if bad_tiles:
            rule, failed = "tile", beyond
            stats = replace(stats, worst=_worst_of(beyond, stats, candidate, golden, bound))
    return GateResult(rule is None, rule, stats, bad_tiles, failed)


def _worst_of(
    beyond: torch.Tensor,
    stats: ErrorStats,
    candidate: torch.Tensor,
    golden: torch.Tensor,
    bound: Bound,
) -> int:
    """Return the flat index of the largest error in the tile that is furthest beyond its limit.

    The largest error of all may lie in a tile of large values, which is as good as any.
    """
    used = torch.where(beyond, stats.tile_sum_sq.sqrt() / bound.tile_limit, 0.0)
    start = int(used.argmax().item()) * TILE
    c, g = (t.reshape(-1)[start : start + TILE].to(torch.float64) for t in (candidate, golden))
    return start + int((c - g).abs_().nan_to_num_(0.0, 0.0, 0.0).argmax().item())


def _is_luck_of_few(
    bound: Bound, stats: ErrorStats, candidate: torch.Tensor, golden: torch.Tensor
) -> bool:
    """Whether what is beyond the usual limits is the luck of few values (`few_values.py`)."""
    if bound.few is None or not _within(bound.few, stats):
        return False
    return _within(bound, error_stats(candidate, golden, at_zeros=True))


def _within(bound: Bound, stats: ErrorStats) -> bool:
    """Whether errors keep the rules on their size, without what excuses a tile."""
    if stats.rmse > bound.bulk_factor * bound.envelope_rmse + bound.floor_rmse:
        return False
    if not stats.max_abs <= tail_limit(bound):
        return False
    tiles = bool((stats.tile_sum_sq.sqrt() <= bound.tile_limit).all().item())
    return tiles or bound.rigour is Rigour.ROUGH


def _beyond_rank(bad: torch.Tensor, stats: ErrorStats, bound: Bound) -> torch.Tensor:
    counts = tile_counts(stats.count, stats.tile_sum_sq)
    errors, envelope = ((t / counts).sqrt() for t in (stats.tile_sum_sq, bound.envelope_tile))
    return beyond_rank(bad, errors, envelope, bound.golden_tile)


def tail_limit(bound: Bound) -> float:
    """Return the largest deviation that one element may have."""
    return bound.tail_factor * bound.envelope_max + bound.floor_max


def _exact_gate(candidate: torch.Tensor, golden: torch.Tensor) -> GateResult:
    stats = error_stats(candidate, golden)
    wrong = stats.nonfinite > 0 or stats.sum_sq > 0
    if not (wrong or golden.dtype.is_floating_point):
        wrong = not torch.equal(candidate, golden.to(candidate.dtype))  # beyond 2 ** 53
    return GateResult(not wrong, "exact" if wrong else None, stats, 0)


def timed_gate(candidate: torch.Tensor, trusted: torch.Tensor, bound: Bound) -> bool:
    """Judge an output of a timed call against a trusted implementation on the same inputs.

    There is no golden for the fresh inputs of a timed call. Both may be off by the envelope, so the
    triangle inequality gives the limits: those of `gate` plus one envelope and one rounding. For
    tiles it is that of the loosest tile, because the trusted values were drawn anew.

    The bound's rigour holds as in `gate`: calls are timed on far values where the reference bears
    no ordinary ones, and one of several outputs may be saturated there.
    """
    if bound.exact:
        return bool(torch.equal(candidate, trusted))
    stats = error_stats(candidate, trusted)  # widened piece by piece
    if stats.nonfinite:
        return False
    if bound.rigour is Rigour.GROSS:
        # those of either side: an element where both are off need not be the same one
        most = most_gross(bound.gross, stats.count) + bound.gross
        return gross_errors(candidate, trusted, bound.spread) <= most
    if _within_timed(bound, stats):
        return True
    if bound.few is None or not _within_timed(bound.few, stats):
        return False
    return _within_timed(bound, error_stats(candidate, trusted, at_zeros=True))


def _within_timed(bound: Bound, stats: ErrorStats) -> bool:
    rmse = (bound.bulk_factor + 1) * bound.envelope_rmse + 2 * bound.floor_rmse
    largest = (bound.tail_factor + 1) * bound.envelope_max + 2 * bound.floor_max
    if not (stats.rmse <= rmse and stats.max_abs <= largest):  # so that NaN is no pass
        return False
    if bound.rigour is Rigour.ROUGH:
        return True
    tile = bound.tile_limit.max() + bound.envelope_tile.max().sqrt() + bound.floor_tile.max().sqrt()
    return float(stats.tile_sum_sq.max().sqrt().item()) <= float(tile.item())


def within_declared(
    candidate: torch.Tensor, golden: torch.Tensor, *, atol: float, rtol: float
) -> bool:
    """Whether |c - g| <= atol + rtol * |g| everywhere: a problem's own tolerance."""
    flat_c, flat_g = candidate.reshape(-1), golden.reshape(-1)
    for start in range(0, flat_g.numel(), CHUNK):
        c, g = flat_c[start : start + CHUNK], flat_g[start : start + CHUNK].to(torch.float64)
        error = (c.to(torch.float64) - g).abs_()
        within = (error <= g.abs().mul_(rtol).add_(atol)) & torch.isfinite(error)
        if not bool(within.all().item()) and not bool((within | same_nonfinite(c, g)).all().item()):
            return False
    return True
