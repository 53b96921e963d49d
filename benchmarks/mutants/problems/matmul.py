"""Product of two matrices, no size a multiple of a tile."""

import torch
import torch.nn as nn

M, K, N = 35, 41, 27


class Model(nn.Module):
    """a @ b."""

    def forward(self, a, b):
        """Multiply a, (M, K), by b, (K, N)."""
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(M, K), torch.randn(K, N)]


def get_init_inputs():
    return []
