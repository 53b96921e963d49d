"""Minimum over dimension 1 of (B, R, C)."""

import torch
import torch.nn as nn

B, R, C = 2, 13, 21


class Model(nn.Module):
    """amin(x, dim=1)."""

    def forward(self, x):
        """Reduce x, (B, R, C)."""
        return x.amin(dim=1)


def get_inputs():
    return [torch.rand(B, R, C)]


def get_init_inputs():
    return []
