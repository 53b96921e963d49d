"""C = A @ B in bfloat16."""

import torch
import torch.nn as nn

M, K, N = 256, 1024, 320


class Model(nn.Module):
    """A @ B."""

    def forward(self, a, b):
        """Map a, (M, K), and b, (K, N), to (M, N)."""
        return a @ b


def get_inputs():
    return [torch.randn(M, K, dtype=torch.bfloat16), torch.randn(K, N, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
