"""2D average pooling; padding is not counted."""

import torch
import torch.nn as nn

B, C, H, W = 2, 1, 9, 11


class Model(nn.Module):
    """AvgPool2d with a window of 3, a stride of 2, padding of 1."""

    def __init__(self, kernel_size, stride, padding):
        super().__init__()
        self.pool = nn.AvgPool2d(kernel_size, stride, padding, count_include_pad=False)

    def forward(self, x):
        """Map x, (B, C, H, W)."""
        return self.pool(x)


def get_inputs():
    return [torch.rand(B, C, H, W)]


def get_init_inputs():
    return [3, 2, 1]
