"""Unbiased variance along rows, in two passes."""

import torch
import triton
import triton.language as tl

BLOCK = 32


@triton.jit
def variance_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    mean = tl.sum(acc, 0) / n
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
        off = tl.where(i < n, x - mean, 0.0)
        squares += off * off
    tl.store(y_ptr + row, tl.sum(squares, 0) / (n - 1))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        variance_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=BLOCK)
        return y
