"""A product whose rows do not know of each other: one of another size must cost none its bits."""

import torch

M, K, N = 64, 32, 1024


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(K, N) / K**0.5)

    def forward(self, x):
        return x @ self.w


def get_inputs():
    return [torch.rand(M, K)]


def get_init_inputs():
    return []
