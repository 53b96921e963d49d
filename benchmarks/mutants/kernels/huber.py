"""Mean smooth L1 loss in one program."""

import torch
import triton
import triton.language as tl

BLOCK = 64


@triton.jit
def huber_kernel(x_ptr, t_ptr, y_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n, other=0.0)
        off = tl.abs(x - tl.load(t_ptr + i, mask=i < n, other=0.0))
        acc += tl.where(off < 1.0, 0.5 * off * off, off - 0.5)
    tl.store(y_ptr, tl.sum(acc, 0) / n)


class ModelNew(torch.nn.Module):
    def forward(self, x, t):
        y = torch.empty((), device=x.device, dtype=x.dtype)
        huber_kernel[(1,)](x, t, y, x.numel(), BLOCK=BLOCK)
        return y
