"""C = A @ B in float32, where the problem allows TF32."""

import torch
import torch.nn as nn

M, K, N = 256, 1024, 320
policy = {"precision": "tf32"}


class Model(nn.Module):
    """A @ B."""

    def forward(self, a, b):
        """Map a, (M, K), and b, (K, N), to (M, N)."""
        return a @ b


def get_inputs():
    return [torch.randn(M, K), torch.randn(K, N)]


def get_init_inputs():
    return []
