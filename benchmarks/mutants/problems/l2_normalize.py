"""Each row divided by its Euclidean norm, at least eps."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS, COLUMNS = 5, 70
workloads = [{"ROWS": 2, "COLUMNS": 128}]


class Model(nn.Module):
    """x / max(norm(x), eps) along rows."""

    def forward(self, x):
        """Normalise x, (ROWS, COLUMNS)."""
        return F.normalize(x, dim=1)


def get_inputs():
    return [torch.rand(ROWS, COLUMNS)]


def get_init_inputs():
    return []
