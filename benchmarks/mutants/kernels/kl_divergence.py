"""Kullback-Leibler divergence of probabilities, summed and divided by the rows."""

import torch
import triton
import triton.language as tl

BLOCK = 16


@triton.jit
def kl_divergence_kernel(p_ptr, q_ptr, y_ptr, rows, n, BLOCK: tl.constexpr):
    acc = tl.zeros([BLOCK], tl.float32)
    for start in range(0, rows * n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        p = tl.load(p_ptr + i, mask=i < rows * n, other=1.0)
        q = tl.load(q_ptr + i, mask=i < rows * n, other=1.0)
        acc += q * (tl.log(q) - tl.log(p))
    tl.store(y_ptr, tl.sum(acc, 0) / rows)


class ModelNew(torch.nn.Module):
    def forward(self, p, q):
        y = torch.empty((), device=p.device, dtype=p.dtype)
        kl_divergence_kernel[(1,)](p, q, y, p.shape[0], p.shape[1], BLOCK=BLOCK)
        return y
