"""KernelBench level 1, problem 23: softmax over rows too long for registers, one row a program.

The first pass keeps a running maximum and a sum rescaled to it; the second writes.
"""

import torch
import triton
import triton.language as tl

BLOCK = 8192


@triton.jit
def softmax_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    top = tl.full([BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + i, mask=i < n, other=float("-inf"))
        new_top = tl.maximum(top, x)
        # a lane beyond the row's end has seen nothing yet: its sum stays 0, not NaN
        shift = tl.where(new_top == float("-inf"), 0.0, new_top)
        total = total * tl.exp(top - shift) + tl.exp(x - shift)
        top = new_top
    row_top = tl.max(top, 0)
    inverse = 1.0 / tl.sum(total * tl.exp(top - row_top), 0)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + i, mask=i < n)
        tl.store(y_ptr + row + i, tl.exp(x - row_top) * inverse, mask=i < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=BLOCK, num_warps=16)
        return y
