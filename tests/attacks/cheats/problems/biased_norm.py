"""A layer norm of x W' + b: a large b makes the mean of a row large beside its deviation."""

import torch

M, K, N = 20, 96, 48


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(K, N)

    def forward(self, x):
        return torch.nn.functional.layer_norm(self.linear(x), (N,))


def get_inputs():
    return [torch.rand(M, K)]


def get_init_inputs():
    return []
