"""KernelBench level 1, problem 94: mean squared error.

Partial sums of equal runs, then one program that adds them: the same order in every call.
"""

import torch
import triton
import triton.language as tl

BLOCK = 4096
PROGRAMS = 1056


@triton.jit
def partial_sums_kernel(x_ptr, t_ptr, sums_ptr, n, steps, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * steps * BLOCK
    acc = tl.zeros([BLOCK], tl.float32)
    for step in range(steps):
        i = first + step * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n, other=0.0)
        off = x - tl.load(t_ptr + i, mask=i < n, other=0.0)
        acc += off * off
    tl.store(sums_ptr + tl.program_id(0), tl.sum(acc, 0))


@triton.jit
def mean_kernel(sums_ptr, y_ptr, programs, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    sums = tl.load(sums_ptr + i, mask=i < programs, other=0.0)
    tl.store(y_ptr, tl.sum(sums, 0) / n)


class ModelNew(torch.nn.Module):
    def forward(self, predictions, targets):
        n = predictions.numel()
        sums = predictions.new_empty(PROGRAMS)
        y = predictions.new_empty(())
        steps = triton.cdiv(n, PROGRAMS * BLOCK)
        partial_sums_kernel[(PROGRAMS,)](
            predictions, targets, sums, n, steps, BLOCK=BLOCK, num_warps=8
        )
        mean_kernel[(1,)](sums, y, PROGRAMS, n, BLOCK=triton.next_power_of_2(PROGRAMS))
        return y
