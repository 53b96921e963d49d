"""Maximum along rows, one row a program."""

import torch
import triton
import triton.language as tl

BLOCK = 32


@triton.jit
def max_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    best = tl.full([BLOCK], float("-inf"), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        best = tl.maximum(best, tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf")))
    tl.store(y_ptr + row, tl.max(best, 0))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        max_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=BLOCK)
        return y
