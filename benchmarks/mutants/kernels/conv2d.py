"""Convolution of (B, C, H, W) without padding, one output plane a program."""

import torch
import triton
import triton.language as tl

BLOCK = 32


@triton.jit
def conv2d_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr, C, H, W, OC, OH, OW, KERNEL: tl.constexpr, BLOCK: tl.constexpr
):
    image = tl.program_id(0) // OC
    out = tl.program_id(0) % OC
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row = i // OW
    col = i % OW
    mask = i < OH * OW
    acc = tl.zeros([BLOCK], tl.float32)
    for c in range(0, C):
        for dy in range(0, KERNEL):
            for dx in range(0, KERNEL):
                at = ((image * C + c) * H + row + dy) * W + col + dx
                x = tl.load(x_ptr + at, mask=mask, other=0.0)
                acc += x * tl.load(w_ptr + ((out * C + c) * KERNEL + dy) * KERNEL + dx)
    acc += tl.load(b_ptr + out)
    tl.store(y_ptr + (image * OC + out) * OH * OW + i, acc, mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self, channels, outputs, kernel_size):
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, outputs, kernel_size)
        self.kernel_size = kernel_size

    def forward(self, x):
        B, C, H, W = x.shape
        OC, kernel = self.conv.out_channels, self.kernel_size
        OH, OW = H - kernel + 1, W - kernel + 1
        y = torch.empty((B, OC, OH, OW), device=x.device, dtype=x.dtype)
        conv2d_kernel[(B * OC, triton.cdiv(OH * OW, BLOCK))](
            x,
            self.conv.weight,
            self.conv.bias,
            y,
            C,
            H,
            W,
            OC,
            OH,
            OW,
            KERNEL=kernel,
            BLOCK=BLOCK,
        )
        return y
