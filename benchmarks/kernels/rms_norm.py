"""KernelBench level 1, problem 36: RMS norm over the channels (dimension 1) of an image.

A program takes all channels of a run of pixels.
"""

import torch
import triton
import triton.language as tl

BLOCK = 64


@triton.jit
def rms_norm_kernel(x_ptr, y_ptr, C, P, eps, BLOCK_C: tl.constexpr, BLOCK: tl.constexpr):
    channels = tl.arange(0, BLOCK_C)
    pixels = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    image = tl.program_id(1).to(tl.int64) * C * P
    i = image + channels[:, None] * P + pixels[None, :]
    mask = (channels < C)[:, None] & (pixels < P)[None, :]
    x = tl.load(x_ptr + i, mask=mask, other=0.0)
    rms = tl.sqrt(tl.sum(x * x, 0) / C + eps)
    tl.store(y_ptr + i, x / rms[None, :], mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self, num_features, eps=1e-5):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        y = torch.empty_like(x)
        batches, C = x.shape[:2]
        P = x.numel() // (batches * C)
        BLOCK_C = triton.next_power_of_2(C)
        rms_norm_kernel[(triton.cdiv(P, BLOCK), batches)](
            x, y, C, P, self.eps, BLOCK_C=BLOCK_C, BLOCK=BLOCK, num_warps=4
        )
        return y
