"""Softmax over the channels (dimension 1) of (B, C, P)."""

import torch
import torch.nn as nn

B, C, P = 2, 11, 37


class Model(nn.Module):
    """softmax(x, dim=1)."""

    def forward(self, x):
        """Map x, (B, C, P)."""
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.rand(B, C, P)]


def get_init_inputs():
    return []
