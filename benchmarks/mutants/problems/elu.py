"""ELU with alpha from the constructor, elementwise."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS, COLUMNS = 3, 67


class Model(nn.Module):
    """x where x > 0, else alpha * (exp(x) - 1)."""

    def __init__(self, alpha):
        super().__init__()
        self.alpha = alpha

    def forward(self, x):
        """Map x, (ROWS, COLUMNS)."""
        return F.elu(x, alpha=self.alpha)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return [1.3]
