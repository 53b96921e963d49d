"""Batch norm with the statistics of the batch itself, one channel a program."""

import torch
import triton
import triton.language as tl


@triton.jit
def batch_norm_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr, B, C, P, eps, BLOCK_B: tl.constexpr, BLOCK_P: tl.constexpr
):
    channel = tl.program_id(0)
    images = tl.arange(0, BLOCK_B)
    pixels = tl.arange(0, BLOCK_P)
    at = (images[:, None] * C + channel) * P + pixels[None, :]
    mask = (images < B)[:, None] & (pixels < P)[None, :]
    x = tl.load(x_ptr + at, mask=mask, other=0.0)
    count = B * P
    mean = tl.sum(tl.sum(x, 1), 0) / count
    off = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(tl.sum(off * off, 1), 0) / count
    scale = tl.load(w_ptr + channel) / tl.sqrt(variance + eps)
    tl.store(y_ptr + at, off * scale + tl.load(b_ptr + channel), mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(channels, track_running_stats=False)

    def forward(self, x):
        B, C, P = x.shape
        y = torch.empty_like(x)
        n = self.norm
        batch_norm_kernel[(C,)](
            x,
            n.weight,
            n.bias,
            y,
            B,
            C,
            P,
            n.eps,
            BLOCK_B=triton.next_power_of_2(B),
            BLOCK_P=triton.next_power_of_2(P),
        )
        return y
