"""Transposed convolution of (B, C, L), each output gathers its inputs."""

import torch
import torch.nn as nn

B, C, L, OC = 2, 2, 14, 3


class Model(nn.Module):
    """ConvTranspose1d with a kernel of 3 and a stride of 2."""

    def __init__(self, channels, outputs, kernel_size, stride):
        super().__init__()
        self.conv = nn.ConvTranspose1d(channels, outputs, kernel_size, stride=stride)

    def forward(self, x):
        """Map x, (B, C, L)."""
        return self.conv(x)


def get_inputs():
    return [torch.rand(B, C, L)]


def get_init_inputs():
    return [C, OC, 3, 2]
