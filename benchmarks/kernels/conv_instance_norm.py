"""KernelBench level 2, problem 17: convolution, instance norm, division.

The convolution is the vendor's; the kernel holds one plane of one image in registers, takes its
mean and variance there and writes the result.
"""

import torch
import triton
import triton.language as tl

NUM_WARPS = 8


@triton.jit
def instance_norm_kernel(x_ptr, y_ptr, n, eps, divide_by, BLOCK: tl.constexpr):
    plane = tl.program_id(0).to(tl.int64) * n
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + plane + i, mask=i < n, other=0.0)
    off = tl.where(i < n, x - tl.sum(x, 0) / n, 0.0)
    variance = tl.sum(off * off, 0) / n
    tl.store(y_ptr + plane + i, off / tl.sqrt(variance + eps) / divide_by, mask=i < n)


class ModelNew(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, divide_by):
        super().__init__()
        self.conv = torch.nn.Conv2d(in_channels, out_channels, kernel_size)
        self.divide_by = divide_by
        self.eps = 1e-5

    def forward(self, x):
        x = self.conv(x).contiguous()
        y = torch.empty_like(x)
        N, C, H, W = x.shape
        BLOCK = triton.next_power_of_2(H * W)
        instance_norm_kernel[(N * C,)](
            x, y, H * W, self.eps, self.divide_by, BLOCK=BLOCK, num_warps=NUM_WARPS
        )
        return y
