"""Product of two lower triangular matrices; tiles above the diagonal are skipped."""

import torch
import triton
import triton.language as tl

BLOCK = 16


@triton.jit
def triangular_kernel(a_ptr, b_ptr, c_ptr, N, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros([BLOCK, BLOCK], tl.float32)
    first = tl.program_id(1)
    last = tl.program_id(0)
    for tile in range(first, last + 1):
        ks = tile * BLOCK + tl.arange(0, BLOCK)
        a_mask = (rows < N)[:, None] & (ks < N)[None, :]
        b_mask = (ks < N)[:, None] & (cols < N)[None, :]
        a = tl.load(a_ptr + rows[:, None] * N + ks[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + ks[:, None] * N + cols[None, :], mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    c = tl.where(rows[:, None] >= cols[None, :], acc, 0.0)
    mask = (rows < N)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], c, mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        N = A.shape[0]
        C = torch.empty_like(A)
        tiles = triton.cdiv(N, BLOCK)
        triangular_kernel[(tiles, tiles)](A, B, C, N, BLOCK=BLOCK)
        return C
