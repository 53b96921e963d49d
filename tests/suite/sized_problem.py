"""The text of a KernelBench problem of any size; a problem of its own for each `n`."""

SOURCE = """\
import torch

N = {n}


class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1


def get_inputs():
    return [torch.rand(N)]


def get_init_inputs():
    return []
"""
