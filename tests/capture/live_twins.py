"""Functions and modules whose copies would be something else if they were taken by name alone."""

import torch
from live_helpers import act as first
from live_helpers import nearest
from torch import nn

x = torch.ones(4)
grid = torch.ones(4)
workloads = 3


def act(x):
    return x * 2


second = act


def merged(x):
    return first(second(x))


def lone_alias(x):
    return second(x)


def round(x):  # noqa: A001
    return x * 10


def own_round(x):
    return round(x) + max(1, 2)


def both_rounds(x):
    return round(x) + nearest(x)


def only_nearest(x):
    return nearest(x)


def local_names(x):
    grid = x * 2
    return [x + grid for x in (grid, x)][0]


def inner_global(x):
    return (lambda: x + grid)()


def names_workloads(x):
    return x * workloads


@torch.no_grad()
def decorated(x):
    return own_round(x)


class Doubled(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale * 2

    def forward(self, x):
        return x * self.scale


class Active(nn.Module):
    """Has parameters, statistics, a random and a nested result."""

    def __init__(self, width):
        super().__init__()
        self.width = width
        self.fc = nn.Linear(width, width)
        self.norm = nn.BatchNorm1d(width)
        self.act = nn.ReLU()

    def forward(self, x):
        y = self.act(self.norm(self.fc(x)))
        return {"y": y, "rest": (nn.functional.dropout(y, training=self.training), None)}


class Restless(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale * 2
        self.source = torch.Generator()

    def forward(self, x):
        return x * torch.rand(x.shape, generator=self.source) * self.scale


class Model(nn.Module):
    def __init__(self, rate=0.5):
        super().__init__()
        self.rate = rate

    def forward(self, x):
        return nn.functional.dropout(x, self.rate, training=self.training)
