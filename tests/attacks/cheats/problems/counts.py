"""Integers in, so that no element can be changed a little: weighted sums of rows."""

import torch

ROWS, COLUMNS = 6, 64


class Model(torch.nn.Module):
    def forward(self, x):
        return (x * x).sum(dim=1).float()


def get_inputs():
    return [torch.randint(0, 100, (ROWS, COLUMNS))]


def get_init_inputs():
    return []
