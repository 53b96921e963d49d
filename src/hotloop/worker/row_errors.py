"""Row errors: how far the envelope is off in each row of an output that has few tiles.

Rows are the slices of the first dimension that has several elements. In a large output rows far
apart in size lie in different tiles of the gate; in a small one they share a tile, and what
belongs to each of them has to be known (`part_rule.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from hotloop.worker.error_stats import TILE

PART = "part"
"""The rule that parts of such an output are judged by."""
MOST = 16 * TILE
"""Elements of an output whose rows are known one by one; of larger ones each part has a tile."""
MOST_ROWS = 4 * TILE


@dataclass(frozen=True, slots=True)
class RowErrors:
    """The worst member of the envelope in each row; float64, one value a row."""

    sum_sq: Tensor
    largest: Tensor

    @classmethod
    def of(cls, golden: Tensor) -> RowErrors | None:
        """Return those of no member yet; None where rows are not looked at one by one.

        Args:
            golden: of any shape.
        """
        rows = next((size for size in golden.shape if size > 1), 1)
        if not (golden.dtype.is_floating_point and 1 < rows <= MOST_ROWS):
            return None
        if not 0 < golden.numel() <= MOST:
            return None
        none = torch.zeros(rows, dtype=torch.float64, device=golden.device)
        return cls(none, none)

    def with_member(self, member: Tensor, golden: Tensor) -> RowErrors:
        """Return them with another member of the envelope, of the golden's shape."""
        error = errors_by_row(member, golden, len(self.sum_sq))
        return self.with_known(RowErrors(error.square().sum(1), error.amax(1)))

    def with_known(self, other: RowErrors) -> RowErrors:
        """Return the worse of two, row by row; of another number of rows these ones."""
        if len(other.sum_sq) != len(self.sum_sq):
            return self
        return RowErrors(
            torch.maximum(self.sum_sq, other.sum_sq), torch.maximum(self.largest, other.largest)
        )


def errors_by_row(made: Tensor, golden: Tensor, rows: int) -> Tensor:
    """Return the absolute errors as rows, float64, [rows, elements of a row].

    Where either is not finite there is no error: the rule `nonfinite` looks at that.
    """
    error = (made.double() - golden.double()).abs().reshape(rows, -1)
    return error.nan_to_num(0.0, posinf=0.0)
