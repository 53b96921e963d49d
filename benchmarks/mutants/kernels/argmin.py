"""Index of the smallest element along rows, the first of equal ones."""

import torch
import triton
import triton.language as tl


@triton.jit
def argmin_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("inf"))
    least = tl.min(x, 0)
    first = tl.min(tl.where(x == least, i, n), 0)
    tl.store(y_ptr + row, first.to(tl.int64))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device, dtype=torch.int64)
        argmin_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
