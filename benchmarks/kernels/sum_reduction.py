"""KernelBench level 1, problem 47: sum over dimension 1 of (B, R, C), kept as size 1.

A program takes a run of columns of one batch and walks down the rows.
"""

import torch
import triton
import triton.language as tl

BLOCK_R = 16
BLOCK_C = 256


@triton.jit
def sum_kernel(x_ptr, y_ptr, R, C, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    batch = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    acc = tl.zeros([BLOCK_R, BLOCK_C], tl.float32)
    for start in range(0, R, BLOCK_R):
        rows = start + tl.arange(0, BLOCK_R)
        mask = (rows < R)[:, None] & (cols < C)[None, :]
        acc += tl.load(x_ptr + batch * R * C + rows[:, None] * C + cols[None, :], mask, other=0.0)
    tl.store(y_ptr + batch * C + cols, tl.sum(acc, 0), mask=cols < C)


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        if dim != 1:
            raise ValueError(f"expected dim 1 of three, got {dim}")

    def forward(self, x):
        B, R, C = x.shape
        y = torch.empty((B, 1, C), device=x.device, dtype=x.dtype)
        sum_kernel[(B, triton.cdiv(C, BLOCK_C))](
            x, y, R, C, BLOCK_R=BLOCK_R, BLOCK_C=BLOCK_C, num_warps=8
        )
        return y
