"""Depthwise convolution of (B, C, H, W) with padding, one plane a program."""

import torch
import torch.nn as nn

B, C, H, W = 2, 2, 5, 9


class Model(nn.Module):
    """Conv2d with as many groups as channels, a kernel of 3 and padding of 1."""

    def __init__(self, channels, kernel_size, padding):
        super().__init__()
        self.conv = nn.Conv2d(
            channels, channels, kernel_size, padding=padding, groups=channels, bias=False
        )

    def forward(self, x):
        """Map x, (B, C, H, W)."""
        return self.conv(x)


def get_inputs():
    return [torch.rand(B, C, H, W)]


def get_init_inputs():
    return [C, 3, 1]
