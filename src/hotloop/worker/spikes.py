"""Spikes: single values of `large` that lie far beyond the rest of their row.

An exponential without the row's maximum subtracted overflows there, and so does one with the
maximum of another block. Beside N(0, 64**2) a spike is no outlier to sums, norms and products.
"""

from __future__ import annotations

import torch
from torch import Tensor

from hotloop.worker.apart import row_values

SPIKE = 8.0
"""A spike of `large` has between this and one more times its factor: at 64, over 200 more than the
largest of 10,000 ordinary values, where exp(89) overflows float32."""
SPIKE_COLUMNS = 32
"""Rows of fewer elements have no spike: a kernel takes them in one block."""
SPIKE_PLACES = ((1, True), None, (1, False), None, (-1, True), None, (-1, False), None)
"""Spikes of eight consecutive rows: the sign, and whether it stands in the second half of the row.
One of a row hides the rest of a softmax, so half of the rows have none."""


def add_spikes(tensor: Tensor, gen: torch.Generator, scale: float) -> None:
    """Overwrite one value of each row that `SPIKE_PLACES` gives a spike, in place.

    Args:
        tensor: any shape; a row is what lies along the last dimension. Short ones stay as they are.
        gen: of the draw's seed.
        scale: the factor of the other values.
    """
    if not tensor.dim() or tensor.shape[-1] < SPIKE_COLUMNS:
        return
    columns, every = tensor.shape[-1], len(SPIKE_PLACES)
    half = columns // 2
    at = torch.randint(0, half, (*tensor.shape[:-1], 1), generator=gen, device=tensor.device)
    spikes = row_values(tensor).uniform_(SPIKE, SPIKE + 1, generator=gen).mul_(scale)
    for first, place in enumerate(SPIKE_PLACES):
        if place is not None:
            sign, is_late = place
            spikes.view(-1)[first::every] *= sign
            at.view(-1)[first::every] += (columns - half) * is_late
    ordinary = tensor.gather(-1, at)
    for first, place in enumerate(SPIKE_PLACES):
        if place is None:
            spikes.view(-1)[first::every] = ordinary.view(-1)[first::every]
    tensor.scatter_(-1, at, spikes)
