"""KernelBench level 1, problem 89: running sum along rows, one row a program, a block at a time."""

import torch
import triton
import triton.language as tl

BLOCK = 4096


@triton.jit
def cumsum_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    before = 0.0
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + i, mask=i < n, other=0.0)
        sums = tl.cumsum(x, 0) + before
        before += tl.sum(x, 0)
        tl.store(y_ptr + row + i, sums, mask=i < n)


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        if dim != 1:
            raise ValueError(f"expected dim 1 of two, got {dim}")

    def forward(self, x):
        y = torch.empty_like(x)
        cumsum_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=BLOCK, num_warps=8)
        return y
