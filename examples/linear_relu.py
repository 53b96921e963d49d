"""A linear layer and a ReLU, which one kernel can do together.

Run: hotloop optimize examples/linear_relu.py
On a machine without a GPU: hotloop optimize examples/linear_relu.py --set M=64,K=128,N=128
"""

import torch
import torch.nn as nn

M, K, N = 2048, 1024, 2048


class Model(nn.Module):
    """relu(x @ weight.T + bias)."""

    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        """Map x, (M, K), to (M, N)."""
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.randn(M, K)]


def get_init_inputs():
    return [K, N]
