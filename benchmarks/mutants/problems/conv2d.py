"""Convolution of (B, C, H, W) without padding, one output plane a program."""

import torch
import torch.nn as nn

B, C, H, W, OC = 2, 2, 6, 9, 2


class Model(nn.Module):
    """Conv2d with a kernel of 3."""

    def __init__(self, channels, outputs, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(channels, outputs, kernel_size)

    def forward(self, x):
        """Map x, (B, C, H, W)."""
        return self.conv(x)


def get_inputs():
    return [torch.rand(B, C, H, W)]


def get_init_inputs():
    return [C, OC, 3]
