"""Tile law: how far a legitimate implementation may be off in one tile of an output.

How small is too small a tile error to hold another implementation to? Write a legitimate error in
tile t as S_t = s_t X: s_t is a scale that follows the operation and the size of the values there,
X has mean square 1 and is luck. With independent errors X is 1 within 1 %; where the elements of a
tile share one error (the sum that normalises a row) X is |N(0, 1)|, and one tile in thirty is 25
times too good. Two draws of parameters also exchange their tiles: a channel that a leaky ReLU
scales by 0.01 in one is scaled by 1 in the other. So the limit of a tile is

    max(4 E_t, F typical_t) + floor_t

E_t        worst member in that tile, on these very inputs
typical_t  median over the 33 known tiles whose golden is nearest in size; a larger tile's error
           counts in proportion to size, a smaller one's too where that law fits the known tiles
           better than errors of one size do, else as it is
F          2 Q, between 4 and 10.5: 2 because a legitimate implementation may be off by twice the
           envelope (the bulk rule), Q = 1 + 6 s with s the standard deviation of E / typical over
           the known tiles, which is the luck as measured; at least 1 + 6 / sqrt(2 n), that of the
           RMSE of n independent errors (n is small in a last tile that is not full)

With independent errors Q is 1 and F stays 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

TILE_FACTOR = 4.0
NEAREST = 33
"""Known tiles that say what is typical."""
SIGMAS = 6.0
"""Standard deviations that luck is allowed: 1e-9 a check, and thousands of tiles are checked."""
ONE_SIGMA = 0.84


def luck(count: float) -> float:
    """Return by what factor the RMSE of `count` independent errors may exceed its mean."""
    return 1.0 + SIGMAS / math.sqrt(2.0 * max(count, 1.0))


@dataclass(slots=True)
class TileLaw:
    """How far legitimate implementations are off in tiles of a size, from all known tiles."""

    sizes: torch.Tensor
    """RMS of the golden in each known tile, ascending; float64."""
    errors: torch.Tensor
    """RMSE of the worst member there."""
    deviation: float = 0.0
    """Standard deviation of error over typical error."""
    grows: bool = False
    """Whether error over size is more alike among the known tiles than error itself."""

    @classmethod
    def of(cls, golden_rms: torch.Tensor, errors: torch.Tensor) -> TileLaw:
        """Build from one value a tile each."""
        sizes, order = golden_rms.sort()
        law = cls(sizes, errors[order])
        law.deviation = min(
            law._deviation(law._near(sizes, c)) for c in (_same_size, _in_proportion)
        )
        some = (law.sizes > 0) & (law.errors > 0)
        sized, scale = law.sizes[some].log(), law.errors[some].log()
        law.grows = _middle_range(scale - sized) < _middle_range(scale)
        return law

    def typical(self, golden_rms: torch.Tensor) -> torch.Tensor:
        """Return the error that is typical of tiles of these sizes."""
        return self._near(golden_rms, _in_proportion if self.grows else _not_above)

    def factors(self, counts: torch.Tensor) -> torch.Tensor:
        """Return F of the module's docstring for tiles of `counts` elements."""
        by_size = 1.0 + SIGMAS / (2.0 * counts).sqrt()
        measured = 1.0 + SIGMAS * self.deviation
        return 2.0 * by_size.clamp(min=measured).clamp(TILE_FACTOR / 2.0, luck(1))

    def _near(
        self, golden_rms: torch.Tensor, weigh: Callable[[torch.Tensor], torch.Tensor]
    ) -> torch.Tensor:
        """Return the median error of the known tiles nearest in size, each weighed.

        `weigh` gets the size asked for over the known tile's.
        """
        known = self.sizes.numel()
        width = min(NEAREST, known)
        middle = torch.searchsorted(self.sizes, golden_rms)
        first = (middle - width // 2).clamp(0, known - width)
        index = first[:, None] + torch.arange(width, device=first.device)
        share = (golden_rms[:, None] / self.sizes[index]).nan_to_num(nan=1.0)
        near = (self.errors[index] * weigh(share)).nan_to_num(nan=0.0)
        return near.kthvalue(width // 2 + 1, dim=1).values  # the upper median: of two the larger

    def _deviation(self, typical: torch.Tensor) -> float:
        """Return how far the 84th percentile of error over typical is above the median."""
        ratios = self.errors[typical > 0] / typical[typical > 0]
        count = ratios.numel()
        if not count:
            return 0.0
        ranks = (max(1, math.ceil(q * count)) for q in (ONE_SIGMA, 0.5))
        high, middle = (float(ratios.kthvalue(rank).values.item()) for rank in ranks)
        return (high - middle) / middle if middle else math.inf


def _middle_range(values: torch.Tensor) -> float:
    """Return the difference of the 84th and the 16th percentile."""
    count = values.numel()
    if not count:
        return 0.0
    low, high = (max(1, math.ceil(q * count)) for q in (1.0 - ONE_SIGMA, ONE_SIGMA))
    return float((values.kthvalue(high).values - values.kthvalue(low).values).item())


def _same_size(share: torch.Tensor) -> torch.Tensor:
    return torch.ones_like(share)


def _in_proportion(share: torch.Tensor) -> torch.Tensor:
    return share


def _not_above(share: torch.Tensor) -> torch.Tensor:
    return share.clamp(max=1.0)
