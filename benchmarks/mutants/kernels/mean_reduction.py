"""Mean over the last dimension of (B, R, C), a few rows a program."""

import torch
import triton
import triton.language as tl

BLOCK_R = 4
BLOCK_C = 16


@triton.jit
def mean_kernel(x_ptr, y_ptr, R, C, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    acc = tl.zeros([BLOCK_R, BLOCK_C], tl.float32)
    for start in range(0, C, BLOCK_C):
        cols = start + tl.arange(0, BLOCK_C)
        mask = (rows < R)[:, None] & (cols < C)[None, :]
        acc += tl.load(x_ptr + rows[:, None] * C + cols[None, :], mask=mask, other=0.0)
    tl.store(y_ptr + rows, tl.sum(acc, 1) / C, mask=rows < R)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[:-1], device=x.device, dtype=x.dtype)
        R, C = y.numel(), x.shape[-1]
        mean_kernel[(triton.cdiv(R, BLOCK_R),)](x, y, R, C, BLOCK_R=BLOCK_R, BLOCK_C=BLOCK_C)
        return y
