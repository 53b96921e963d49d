"""Running sum along rows; the kernel is `benchmarks/kernels/cumsum.py`."""

import torch
import torch.nn as nn

ROWS, COLUMNS = 3, 150


class Model(nn.Module):
    """cumsum(x, dim)."""

    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        """Map x, (ROWS, COLUMNS)."""
        return torch.cumsum(x, dim=self.dim)


def get_inputs():
    return [torch.rand(ROWS, COLUMNS)]


def get_init_inputs():
    return [1]
