"""Mean hinge loss against targets of -1 and 1."""

import torch
import torch.nn as nn

ROWS = 133


class Model(nn.Module):
    """mean(max(1 - x * t, 0))."""

    def forward(self, x, t):
        """Reduce x and t, (ROWS,), to a number."""
        return torch.mean(torch.clamp(1 - x * t, min=0))


def get_inputs():
    return [torch.rand(ROWS), torch.randint(0, 2, (ROWS,)).float() * 2 - 1]


def get_init_inputs():
    return []
