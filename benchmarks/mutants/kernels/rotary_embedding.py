"""Rotary position embedding of (B, S, H, D), halves rotated."""

import torch
import triton
import triton.language as tl


@triton.jit
def rotary_kernel(x_ptr, cos_ptr, sin_ptr, y_ptr, S, H, HALF, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    position = row // H % S
    i = tl.arange(0, BLOCK)
    mask = i < HALF
    a = tl.load(x_ptr + row * 2 * HALF + i, mask=mask)
    b = tl.load(x_ptr + row * 2 * HALF + HALF + i, mask=mask)
    cos = tl.load(cos_ptr + position * HALF + i, mask=mask)
    sin = tl.load(sin_ptr + position * HALF + i, mask=mask)
    tl.store(y_ptr + row * 2 * HALF + i, a * cos - b * sin, mask=mask)
    tl.store(y_ptr + row * 2 * HALF + HALF + i, a * sin + b * cos, mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, x, cos, sin):
        B, S, H, D = x.shape
        y = torch.empty_like(x)
        HALF = D // 2
        rotary_kernel[(B * S * H,)](x, cos, sin, y, S, H, HALF, BLOCK=triton.next_power_of_2(HALF))
        return y
