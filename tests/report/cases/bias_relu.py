"""A bias and a ReLU."""

import torch

N = 1024


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(width))

    def forward(self, x):
        return torch.relu(x + self.bias)


def get_inputs():
    return [torch.rand(N, 64)]


def get_init_inputs():
    return [64]
