"""1D max pooling with padding and dilation."""

import torch
import torch.nn as nn

B, C, L = 2, 3, 37


class Model(nn.Module):
    """MaxPool1d with a window of 3, a stride of 2, padding of 1 and dilation of 2."""

    def __init__(self, kernel_size, stride, padding, dilation):
        super().__init__()
        self.pool = nn.MaxPool1d(kernel_size, stride, padding, dilation)

    def forward(self, x):
        """Map x, (B, C, L)."""
        return self.pool(x)


def get_inputs():
    return [torch.rand(B, C, L)]


def get_init_inputs():
    return [3, 2, 1, 2]
