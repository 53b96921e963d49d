"""KernelBench level 1, problem 44: 1D average pooling; padding counts as zeros."""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def average_pool_kernel(
    x_ptr,
    y_ptr,
    L,
    OL,
    KERNEL: tl.constexpr,
    STRIDE: tl.constexpr,
    PADDING: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for d in tl.static_range(KERNEL):
        at = i * STRIDE - PADDING + d
        inside = (i < OL) & (at >= 0) & (at < L)
        total += tl.load(x_ptr + row * L + at, mask=inside, other=0.0)
    tl.store(y_ptr + row * OL + i, total / KERNEL, mask=i < OL)


class ModelNew(torch.nn.Module):
    def __init__(self, kernel_size, stride=1, padding=0):
        super().__init__()
        self.window = (kernel_size, stride, padding)

    def forward(self, x):
        N, C, L = x.shape
        kernel, stride, padding = self.window
        OL = (L + 2 * padding - kernel) // stride + 1
        y = torch.empty((N, C, OL), device=x.device, dtype=x.dtype)
        average_pool_kernel[(N * C, triton.cdiv(OL, BLOCK))](
            x, y, L, OL, KERNEL=kernel, STRIDE=stride, PADDING=padding, BLOCK=BLOCK, num_warps=4
        )
        return y
