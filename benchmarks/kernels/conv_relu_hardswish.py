"""KernelBench level 2, problem 57: convolution, ReLU, hard swish.

The convolution is the vendor's; the kernel does the rest in one pass.
"""

import torch
import triton
import triton.language as tl

BLOCK = 4096


@triton.jit
def relu_hardswish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0)
    y = x * tl.minimum(tl.maximum((x + 3.0) / 6.0, 0.0), 1.0)
    tl.store(y_ptr + i, y, mask=i < n)


class ModelNew(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = torch.nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        x = self.conv(x).contiguous()
        y = torch.empty_like(x)
        n = x.numel()
        relu_hardswish_kernel[(triton.cdiv(n, BLOCK),)](x, y, n, BLOCK=BLOCK, num_warps=8)
        return y
