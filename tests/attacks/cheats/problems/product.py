"""A bfloat16 matrix product over 512 terms: a low-precision accumulator shows."""

import torch

M, K, N = 16, 512, 16


class Model(torch.nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(M, K, dtype=torch.bfloat16), torch.randn(K, N, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
