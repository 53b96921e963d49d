"""Mean over the last dimension of (B, R, C), a few rows a program."""

import torch
import torch.nn as nn

B, R, C = 2, 5, 50
workloads = [{"B": 1, "R": 9, "C": 33}]


class Model(nn.Module):
    """mean(x, dim=-1)."""

    def forward(self, x):
        """Reduce x, (B, R, C)."""
        return x.mean(dim=-1)


def get_inputs():
    return [torch.rand(B, R, C)]


def get_init_inputs():
    return []
