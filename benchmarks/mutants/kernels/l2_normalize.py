"""Each row divided by its Euclidean norm, at least eps."""

import torch
import triton
import triton.language as tl

BLOCK = 32


@triton.jit
def l2_normalize_kernel(x_ptr, y_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
        squares += x * x
    norm = tl.maximum(tl.sqrt(tl.sum(squares, 0)), eps)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + i, mask=i < n)
        tl.store(y_ptr + row * n + i, x / norm, mask=i < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        l2_normalize_kernel[(x.shape[0],)](x, y, x.shape[1], 1e-12, BLOCK=BLOCK)
        return y
