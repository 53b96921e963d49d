"""Layer normalisation over each row, with a learned scale and shift.

Run: hotloop optimize examples/layer_norm.py
On a machine without a GPU: hotloop optimize examples/layer_norm.py --set ROWS=64
"""

import torch
import torch.nn as nn

ROWS, COLUMNS = 4096, 2048


class Model(nn.Module):
    """(x - mean) / sqrt(var + eps) * weight + bias."""

    def __init__(self, columns):
        super().__init__()
        self.norm = nn.LayerNorm(columns)

    def forward(self, x):
        """Normalise each row of x, (ROWS, COLUMNS)."""
        return self.norm(x)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return [COLUMNS]
