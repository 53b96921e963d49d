"""Product of two lower triangular matrices; tiles above the diagonal are skipped."""

import torch
import torch.nn as nn

N = 45


class Model(nn.Module):
    """tril(A @ B)."""

    def forward(self, A, B):
        """Multiply A and B, (N, N), both lower triangular."""
        return torch.tril(A @ B)


def get_inputs():
    return [torch.tril(torch.rand(N, N)), torch.tril(torch.rand(N, N))]


def get_init_inputs():
    return []
