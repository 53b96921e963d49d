"""Two results that have nothing to do with each other: work that could run at the same time."""

import torch
import torch.nn as nn

COUNT, ROWS, COLUMNS = 200_000, 300, 500


class Model(nn.Module):
    """x * sigmoid(x), and the sums of the rows of w."""

    def forward(self, x, w):
        """Map x, (COUNT,), and w, (ROWS, COLUMNS), to (COUNT,) and (ROWS,)."""
        return x * torch.sigmoid(x), w.sum(dim=1)


def get_inputs():
    return [torch.randn(COUNT), torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
