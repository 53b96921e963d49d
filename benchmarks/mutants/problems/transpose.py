"""Transposition of a matrix into contiguous memory."""

import torch
import torch.nn as nn

M, N = 37, 50


class Model(nn.Module):
    """x.T, contiguous."""

    def forward(self, x):
        """Map x, (M, N), to (N, M)."""
        return x.t().contiguous()


def get_inputs():
    return [torch.randn(M, N)]


def get_init_inputs():
    return []
