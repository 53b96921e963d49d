"""Convolution of (B, C, L) with padding and stride, one output channel of one image a program."""

import torch
import torch.nn as nn

B, C, L, OC = 2, 2, 41, 3


class Model(nn.Module):
    """Conv1d with a kernel of 3."""

    def __init__(self, channels, outputs, kernel_size, stride, padding):
        super().__init__()
        self.conv = nn.Conv1d(channels, outputs, kernel_size, stride=stride, padding=padding)

    def forward(self, x):
        """Map x, (B, C, L)."""
        return self.conv(x)


def get_inputs():
    return [torch.rand(B, C, L)]


def get_init_inputs():
    return [C, OC, 3, 2, 1]
