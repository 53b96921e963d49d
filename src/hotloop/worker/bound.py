"""Bound: what one output may deviate by, from its golden and an envelope of implementations.

Everything is measured: the worst error of the envelope's members over the output, at its worst
element, and in each tile of 16,384 consecutive elements; and the rounding floor, which no
implementation can go below.

The limit of a tile is max(4 E_t, F typical_t) + floor_t, derived in `tile_law.py`. Outputs of a few
elements have factors widened by 1 + 6 / sqrt(2 n), for their RMSE is luck too; at 16,384 elements
that is 3 %. An output of few values among zeros has a second bound, `few` (`few_values.py`).

Rounding floor: for float32 and float64 outputs 4 units in the last place (2 ** -23 and 2 ** -52) of
each element, what chains of transcendental functions are apart in correct libraries; for narrower
outputs the distance from the golden to the nearest value of that dtype.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from hotloop.core.verdict import Rigour
from hotloop.worker.error_stats import (
    TILE,
    ErrorStats,
    error_stats,
    rounding_stats,
    size_stats,
    tile_counts,
)
from hotloop.worker.few_values import carriers, is_too_few
from hotloop.worker.gross import gross_errors, spread
from hotloop.worker.row_errors import RowErrors
from hotloop.worker.tile_law import TILE_FACTOR, TileLaw, luck

__all__ = ["Bound", "BoundBuilder", "Rigour", "make_bound", "reseeded"]

TAIL_FACTOR = 4.0
ROUGH_FACTOR = 4.0
"""By which bulk and tail are wider where a bound is `Rigour.ROUGH`."""
FLOOR_ULPS = 4.0
WIDE = (torch.float32, torch.float64)


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
    """Over the finite elements, as all that follows."""
    golden_max: float
    golden_tile: torch.Tensor
    """Root mean square a tile."""
    law: TileLaw
    tile_limit: torch.Tensor
    """Square root of the sum of squares that a tile may have."""
    luck: float
    """By what factor the RMSE of this output may be beyond its mean."""
    rigour: Rigour = Rigour.FULL
    spread: float = 0.0
    """The golden's standard deviation, where the bound is `Rigour.GROSS`; else 0."""
    gross: int = 0
    """Gross errors of the envelope's worst member; counted where the bound is `Rigour.GROSS`."""
    values: int = 0
    """Elements that carry rounding: those not exactly 0 in the golden and in every member."""
    few: Bound | None = None
    """With the luck of what carries rounding alone, where some elements carry none."""
    pooled_rmse: float = 0.0
    """RMSE over the values alone of the worst of other draws (`few_values.py`); 0: none known."""
    pooled_max: float = 0.0
    """Largest error there."""
    rows: RowErrors | None = None
    """The envelope's errors row by row, in an output of few tiles (`part_rule.py`)."""

    @property
    def count(self) -> int:
        """Elements of the output."""
        return math.prod(self.shape)

    @property
    def bulk_factor(self) -> float:
        """M of the bulk rule."""
        return (2.0 if self.dtype in WIDE else 3.0) * self.luck * self._wider

    @property
    def tail_factor(self) -> float:
        """Factor of the tail rule."""
        return max(TAIL_FACTOR, 2.0 * self.luck) * self._wider

    @property
    def has_too_few(self) -> bool:
        """Whether it has values, but so few that their errors say nothing of precision."""
        some = self.few is not None and self.golden_max > 0
        return some and is_too_few(self.values, self.count)

    @property
    def values_rmse(self) -> float:
        """RMSE of the envelope's worst member over the values alone; 0 where there are none."""
        return self.envelope_rmse * math.sqrt(self.count / self.values) if self.values else 0.0

    @property
    def _wider(self) -> float:
        return ROUGH_FACTOR if self.rigour is Rigour.ROUGH else 1.0

    @property
    def conditioning(self) -> float:
        """Largest envelope error as a share of the largest golden value.

        Infinite when a member of the envelope is not finite where the golden is, or the other way
        round: then the bulk rule would allow anything.
        """
        if not (math.isfinite(self.envelope_rmse) and math.isfinite(self.floor_rmse)):
            return math.inf
        if self.golden_max == 0:
            return 0.0 if self.envelope_max == 0 else math.inf
        return self.envelope_max / self.golden_max

    def pool(self, rmse: float, largest: float) -> None:
        """Let errors of other draws count in `few`, where this one has too few values.

        Args:
            rmse: over the values alone, so that draws with more of them weigh no more.
            largest: error of one value.
        """
        self.pooled_rmse, self.pooled_max = rmse, largest
        if self.has_too_few and self.few is not None:
            rmse *= math.sqrt(self.values / self.count)
            self.few = replace(
                self.few,
                envelope_rmse=max(self.envelope_rmse, rmse),
                envelope_max=max(self.envelope_max, largest),
            )


class BoundBuilder:
    """Collects the members of an envelope one at a time, so that they need not live together."""

    def __init__(
        self,
        golden: torch.Tensor,
        dtype: torch.dtype,
        *,
        exact: bool = False,
        rigour: Rigour = Rigour.FULL,
    ) -> None:
        self._golden = golden
        self._rigour = rigour
        self._dtype = dtype
        self._exact = exact or not dtype.is_floating_point
        self._size = size_stats(golden)
        self._rmse = 0.0
        self._max = 0.0
        self._tile = torch.zeros_like(self._size.tile_sum_sq)
        self._carriers = carriers(golden, golden)
        self._spread = spread(golden) if rigour is Rigour.GROSS else 0.0
        self._gross = 0
        self._rows = None if self._exact else RowErrors.of(golden)

    def add(self, member: torch.Tensor) -> None:
        """Add the output of a legitimate implementation, of the golden's shape."""
        stats = error_stats(member, self._golden)
        self._rmse = max(self._rmse, stats.rmse)
        self._max = max(self._max, stats.max_abs)
        self._tile = torch.maximum(self._tile, stats.tile_sum_sq)
        if int(self._carriers.sum().item()) < self._size.count:
            self._carriers = torch.maximum(self._carriers, carriers(self._golden, member))
        self._gross = max(self._gross, gross_errors(member, self._golden, self._spread))
        if self._rows is not None:
            self._rows = self._rows.with_member(member, self._golden)

    def build(self, known: Bound | None = None) -> Bound:
        """Return the bound.

        Args:
            known: the bound of another draw of the same profile, whose envelope counts as well:
                how far legitimate implementations are off is a property of the operation and the
                distribution.
        """
        golden, size = self._golden, self._size
        floor = _floor(golden, self._dtype, size)
        counts = tile_counts(size.count, self._tile)
        golden_tile = (size.tile_sum_sq / counts).sqrt()
        full = max(1, size.count // TILE)  # a last tile of few elements is no example of typical
        law = TileLaw.of(golden_tile[:full], (self._tile / counts).sqrt()[:full])
        own = self._tile
        if known is not None:
            law, own = known.law, torch.maximum(own, _carried(known, golden_tile))
        typical = law.typical(golden_tile) * counts.sqrt()
        limit = torch.maximum(TILE_FACTOR * own.sqrt(), law.factors(counts) * typical)
        bound = Bound(
            dtype=self._dtype,
            shape=tuple(golden.shape),
            exact=self._exact,
            envelope_rmse=max(self._rmse, known.envelope_rmse if known else 0.0),
            envelope_max=max(self._max, known.envelope_max if known else 0.0),
            envelope_tile=own,
            floor_rmse=floor.rmse,
            floor_max=floor.max_abs,
            floor_tile=floor.tile_sum_sq,
            golden_rms=size.rmse,
            golden_max=size.max_abs,
            golden_tile=golden_tile,
            law=law,
            tile_limit=limit + floor.tile_sum_sq.sqrt(),
            luck=luck(size.count),
            rigour=self._rigour,
            spread=self._spread,
            gross=max(self._gross, known.gross if known else 0),
            values=int(self._carriers.sum().item()),
            rows=self._rows,
        )
        bound.few = self._few(bound, typical)
        if known is not None:
            bound.pool(known.pooled_rmse, known.pooled_max)
            if bound.rows is not None and known.rows is not None:
                bound.rows = bound.rows.with_known(known.rows)
        return bound

    def _few(self, bound: Bound, typical: torch.Tensor) -> Bound | None:
        """Return the bound with the luck of what carries rounding, where that is not everything."""
        values = bound.values
        if self._exact or bound.rigour is Rigour.GROSS or values >= bound.count:
            return None
        too_few = is_too_few(values, bound.count)
        if too_few:
            limit = torch.full_like(bound.tile_limit, math.inf)
        else:
            wide = bound.law.factors(self._carriers.clamp(min=1)) * typical
            limit = torch.maximum(bound.tile_limit, wide + bound.floor_tile.sqrt())
        return replace(bound, luck=luck(1 if too_few else values), tile_limit=limit)


def _carried(known: Bound, golden_tile: torch.Tensor) -> torch.Tensor:
    """Return the known errors place by place, in proportion where a tile is smaller now."""
    share = (golden_tile / known.golden_tile).nan_to_num(nan=1.0).clamp(max=1.0)
    return known.envelope_tile * share.square()


def _floor(golden: torch.Tensor, dtype: torch.dtype, size: ErrorStats) -> ErrorStats:
    if dtype in WIDE:
        ulps = FLOOR_ULPS * torch.finfo(dtype).eps  # as if it were an error of each element
        return ErrorStats(
            count=size.count,
            sum_sq=size.sum_sq * ulps**2,
            max_abs=size.max_abs * ulps,
            worst=size.worst,
            nonfinite=0,
            tile_sum_sq=size.tile_sum_sq * ulps**2,
        )
    if dtype.is_floating_point:
        return rounding_stats(golden, dtype)
    none = torch.zeros_like(size.tile_sum_sq)
    return ErrorStats(size.count, 0.0, 0.0, 0, 0, none)


def make_bound(
    golden: torch.Tensor,
    members: Sequence[torch.Tensor],
    dtype: torch.dtype,
    *,
    exact: bool,
    rigour: Rigour = Rigour.FULL,
) -> Bound:
    """Build the bound of one output from its golden and the envelope's members.

    Args:
        golden: float64 (or integer, boolean: then the comparison is exact).
        members: outputs of the legitimate implementations, same shape.
        dtype: the output's dtype.
        exact: demand equality (integer-valued profiles).
        rigour: which rules hold.
    """
    builder = BoundBuilder(golden, dtype, exact=exact, rigour=rigour)
    for member in members:
        builder.add(member)
    return builder.build()


def reseeded(known: Bound, golden: torch.Tensor, members: Sequence[torch.Tensor] = ()) -> Bound:
    """Return the bound of another draw of a known one's profile.

    The whole envelope need not run again: its errors are taken over, tile by tile in what is
    typical of tiles of a size. Members that did run on the new inputs (eager is cheap) count too.
    """
    builder = BoundBuilder(golden, known.dtype, exact=known.exact, rigour=known.rigour)
    for member in members:
        builder.add(member)
    return builder.build(known)
