"""Functions and modules as a user's program has them."""

import math
from math import sqrt as root

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

SCALE = 0.5
LIMITS = (-1.0, float("inf"))
KIND = torch.float32
TABLE = torch.arange(4)


def squash(x):
    return F.softplus(x) * SCALE


squeezed = squash


def gated(x, y):
    """Names a helper by another name, constants, a module and a function of one."""
    return (squeezed(x) * root(4.0) + math.pi * y).clamp(*LIMITS).to(KIND)


def looks_up(x):
    return x + TABLE


def flexible(*tensors):
    return tensors[0]


def keyword_only(x, *, scale):
    return x * scale


class Block(nn.Module):
    def __init__(self, width, hidden=8):
        super().__init__()
        self.width = width
        self.hidden = hidden
        self.up = nn.Linear(width, hidden)

    def forward(self, x):
        return squash(self.up(x))


class Nested(Block):
    def __init__(self, width):
        super().__init__(width, 4)
        self.down = nn.Linear(4, width)

    def forward(self, x):
        return self.down(super().forward(x))


class Forgetful(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return x * self.weight
