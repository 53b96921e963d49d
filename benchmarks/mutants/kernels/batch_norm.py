"""Batch norm with running statistics, as in inference."""

import torch
import triton
import triton.language as tl

BLOCK = 32


@triton.jit
def batch_norm_kernel(
    x_ptr, mean_ptr, var_ptr, w_ptr, b_ptr, y_ptr, C, P, eps, BLOCK: tl.constexpr
):
    plane = tl.program_id(0)
    channel = plane % C
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mean = tl.load(mean_ptr + channel)
    scale = tl.load(w_ptr + channel) * tl.rsqrt(tl.load(var_ptr + channel) + eps)
    x = tl.load(x_ptr + plane * P + i, mask=i < P)
    tl.store(y_ptr + plane * P + i, (x - mean) * scale + tl.load(b_ptr + channel), mask=i < P)


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(channels)

    def forward(self, x):
        B, C, P = x.shape
        y = torch.empty_like(x)
        n = self.norm
        batch_norm_kernel[(B * C, triton.cdiv(P, BLOCK))](
            x, n.running_mean, n.running_var, n.weight, n.bias, y, C, P, n.eps, BLOCK=BLOCK
        )
        return y
