"""Softmax over rows, at sizes that are not the nominal ones too."""

import torch
import torch.nn as nn

ROWS, COLUMNS = 256, 1000
workloads = [
    {"ROWS": 5, "COLUMNS": 33},
    {"ROWS": 1, "COLUMNS": 257},
    {"ROWS": 9, "COLUMNS": 64, "role": "held_out"},
]


class Model(nn.Module):
    """softmax(x, dim=1)."""

    def forward(self, x):
        """Return the softmax of each row of x, (ROWS, COLUMNS)."""
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
