"""Rows of random masks: what a value profile makes them, as random numbers never do.

Empty and full rows are what a division by a count, or a softmax, has to bear. Rows of which one end
is left, or missing, are what padding to the left and to the right makes: a kernel that takes a row
in blocks meets whole blocks of nothing in a row that is not empty.

Not here: which inputs are masks (`random_sources.py`).
"""

from __future__ import annotations

import torch
from torch import Tensor

EMPTY, FULL = "empty", "full"
PADDED = frozenset({"last", "first", "not last", "not first"})
ROWS = (EMPTY, FULL, "last", "first", "", "not last", "not first", "")
"""Kinds of consecutive rows; those without a name stay as they are. An end is an eighth."""
FORMS = (
    PADDED | {EMPTY, FULL},
    PADDED | {FULL},
    PADDED | {EMPTY},
    PADDED,
    frozenset({EMPTY, FULL}),
)
"""Which kinds are tried, the first that the reference bears is taken. A softmax has no result for
an empty row, or for a full one where the mask says what is left out."""
END = 8
"""The share of a row that an end is; shorter rows have none."""
FEWEST = 5
"""Masks of fewer rows stay as they are: too few would be left of what `get_inputs` made."""


def make_rows(mask: Tensor, kinds: frozenset[str]) -> None:
    """Make rows of a mask, which lie along its last dimension, of these kinds, in place.

    Args:
        mask: booleans, at least two dimensions; others stay as they are.
        kinds: which of `ROWS` are made.
    """
    if mask.dim() < 2 or mask.shape[:-1].numel() < FEWEST:
        return
    rows = torch.arange(mask.shape[:-1].numel(), device=mask.device).view(mask.shape[:-1])
    for first, kind in enumerate(ROWS):
        told = _row(kind, mask.shape[-1], mask.device) if kind in kinds else None
        if told is not None:
            mask[rows % len(ROWS) == first] = told


def _row(kind: str, size: int, device: torch.device) -> Tensor | None:
    """Return one row of a kind, or None where it has no ends."""
    row = torch.zeros(size, dtype=torch.bool, device=device)
    if kind in (EMPTY, FULL):
        return row.logical_not_() if kind == FULL else row
    end = size // END
    if not end:
        return None
    if kind.endswith("last"):
        row[-end:] = True
    else:
        row[:end] = True
    return row.logical_not_() if kind.startswith("not") else row
