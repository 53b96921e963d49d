"""RMS norm of bfloat16 rows; the sum of squares is float32."""

import torch
import torch.nn as nn

ROWS, COLUMNS = 512, 1000


class Model(nn.Module):
    """x / sqrt(mean(x ** 2) + eps) * weight, in float32, rounded once."""

    def __init__(self, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(columns, dtype=torch.bfloat16))

    def forward(self, x):
        """Normalise each row of x, (ROWS, COLUMNS)."""
        wide = x.float()
        scale = torch.rsqrt(wide.pow(2).mean(dim=1, keepdim=True) + 1e-5)
        return (wide * scale * self.weight.float()).to(x.dtype)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS, dtype=torch.bfloat16)]


def get_init_inputs():
    return [COLUMNS]
