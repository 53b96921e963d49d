"""Sums of columns: the long dimension is the one that threads do not share."""

import torch
import torch.nn as nn

ROWS, COLUMNS = 4096, 256


class Model(nn.Module):
    """x.sum(dim=0)."""

    def forward(self, x):
        """Reduce x, (ROWS, COLUMNS), to (COLUMNS,)."""
        return x.sum(dim=0)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
