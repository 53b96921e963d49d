"""Cosine similarity of pairs of rows."""

import torch
import triton
import triton.language as tl

BLOCK = 16


@triton.jit
def cosine_kernel(x_ptr, t_ptr, y_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    xt = tl.zeros([BLOCK], tl.float32)
    xx = tl.zeros([BLOCK], tl.float32)
    tt = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
        t = tl.load(t_ptr + row * n + i, mask=i < n, other=0.0)
        xt += x * t
        xx += x * x
        tt += t * t
    norm_x = tl.maximum(tl.sqrt(tl.sum(xx, 0)), eps)
    norm_t = tl.maximum(tl.sqrt(tl.sum(tt, 0)), eps)
    tl.store(y_ptr + row, tl.sum(xt, 0) / (norm_x * norm_t))


class ModelNew(torch.nn.Module):
    def forward(self, x, t):
        y = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        cosine_kernel[(x.shape[0],)](x, t, y, x.shape[1], 1e-8, BLOCK=BLOCK)
        return y
