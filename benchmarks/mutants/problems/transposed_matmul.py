"""A transposed times B, (K, M) and (K, N)."""

import torch
import torch.nn as nn

M, N, K = 35, 44, 50


class Model(nn.Module):
    """A.T @ B."""

    def forward(self, A, B):
        """Multiply A, (K, M), and B, (K, N), to (M, N)."""
        return A.T @ B


def get_inputs():
    return [torch.rand(K, M), torch.rand(K, N)]


def get_init_inputs():
    return []
