"""Depthwise convolution of (B, C, H, W) with padding, one plane a program."""

import torch
import triton
import triton.language as tl

BLOCK = 32


@triton.jit
def depthwise_kernel(
    x_ptr,
    w_ptr,
    y_ptr,
    C,
    H,
    W,
    OH,
    OW,
    KERNEL: tl.constexpr,
    PADDING: tl.constexpr,
    BLOCK: tl.constexpr,
):
    plane = tl.program_id(0)
    channel = plane % C
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros([BLOCK], tl.float32)
    for dy in range(0, KERNEL):
        for dx in range(0, KERNEL):
            row = i // OW - PADDING + dy
            col = i % OW - PADDING + dx
            inside = (i < OH * OW) & (row >= 0) & (row < H) & (col >= 0) & (col < W)
            x = tl.load(x_ptr + (plane * H + row) * W + col, mask=inside, other=0.0)
            acc += x * tl.load(w_ptr + (channel * KERNEL + dy) * KERNEL + dx)
    tl.store(y_ptr + plane * OH * OW + i, acc, mask=i < OH * OW)


class ModelNew(torch.nn.Module):
    def __init__(self, channels, kernel_size, padding):
        super().__init__()
        self.conv = torch.nn.Conv2d(
            channels, channels, kernel_size, padding=padding, groups=channels, bias=False
        )
        self.window = (kernel_size, padding)

    def forward(self, x):
        B, C, H, W = x.shape
        kernel, padding = self.window
        OH, OW = (n + 2 * padding - kernel + 1 for n in (H, W))
        y = torch.empty((B, C, OH, OW), device=x.device, dtype=x.dtype)
        depthwise_kernel[(B * C, triton.cdiv(OH * OW, BLOCK))](
            x, self.conv.weight, y, C, H, W, OH, OW, KERNEL=kernel, PADDING=padding, BLOCK=BLOCK
        )
        return y
