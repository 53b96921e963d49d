"""Rotary position embedding of (B, S, H, D), halves rotated."""

import torch
import torch.nn as nn

B, S, H, D = 2, 7, 3, 12


class Model(nn.Module):
    """Rotate pairs (i, i + D/2) by the angles of cos and sin, (S, D/2)."""

    def forward(self, x, cos, sin):
        """Map x, (B, S, H, D)."""
        a, b = x.chunk(2, dim=-1)
        cos, sin = cos[None, :, None], sin[None, :, None]
        return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


def get_inputs():
    angles = torch.rand(S, D // 2) * 6.28
    return [torch.rand(B, S, H, D), torch.cos(angles), torch.sin(angles)]


def get_init_inputs():
    return []
