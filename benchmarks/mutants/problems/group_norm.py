"""Group normalisation of (B, C, L) with a learned scale and shift."""

import torch
import torch.nn as nn

B, C, L, GROUPS = 2, 6, 45, 3


class Model(nn.Module):
    """GroupNorm."""

    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        """Map x, (B, C, L)."""
        return self.norm(x)


def get_inputs():
    return [torch.randn(B, C, L)]


def get_init_inputs():
    return [GROUPS, C]
