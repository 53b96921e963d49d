"""silu(a) * b of the two halves of each row."""

import torch
import triton
import triton.language as tl

BLOCK = 16


@triton.jit
def swiglu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x_ptr + row * 2 * n + i, mask=i < n)
    b = tl.load(x_ptr + row * 2 * n + n + i, mask=i < n)
    tl.store(y_ptr + row * n + i, a / (1.0 + tl.exp(-a)) * b, mask=i < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        R, n = x.shape[0], x.shape[1] // 2
        y = torch.empty((R, n), device=x.device, dtype=x.dtype)
        swiglu_kernel[(R, triton.cdiv(n, BLOCK))](x, y, n, BLOCK=BLOCK)
        return y
