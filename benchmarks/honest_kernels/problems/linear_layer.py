"""A linear layer and a ReLU, whose weight may be packed ahead."""

import torch
import torch.nn as nn

M, K, N = 128, 512, 256


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
