"""Softmax over each row of a matrix: bound by memory, so one pass over the data is the aim.

Run: hotloop optimize examples/row_softmax.py
On a machine without a GPU: hotloop optimize examples/row_softmax.py --set ROWS=64
"""

import torch
import torch.nn as nn

ROWS, COLUMNS = 4096, 4096


class Model(nn.Module):
    """softmax(x, dim=-1)."""

    def forward(self, x):
        """Return the softmax of each row of x, (ROWS, COLUMNS)."""
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
