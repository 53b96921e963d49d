"""KernelBench level 2, problem 88: linear layer, group norm, swish, times a weight, swish.

The matrix product is the vendor's; the kernel does the rest for a few groups of one row.
"""

import torch
import triton
import triton.language as tl

GROUPS = 32


@triton.jit
def group_norm_swish_kernel(
    x_ptr,
    w_ptr,
    b_ptr,
    m_ptr,
    y_ptr,
    groups,
    size,
    eps,
    GROUPS: tl.constexpr,
    SIZE: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * groups * size
    group = tl.program_id(1) * GROUPS + tl.arange(0, GROUPS)
    lane = tl.arange(0, SIZE)
    at = group[:, None] * size + lane[None, :]
    mask = (group < groups)[:, None] & (lane < size)[None, :]
    x = tl.load(x_ptr + row + at, mask=mask, other=0.0)
    mean = tl.sum(x, 1) / size
    off = tl.where(mask, x - mean[:, None], 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(off * off, 1) / size + eps)
    w = tl.load(w_ptr + at, mask=mask, other=0.0)
    b = tl.load(b_ptr + at, mask=mask, other=0.0)
    m = tl.load(m_ptr + at, mask=mask, other=0.0)
    y = off * scale[:, None] * w + b
    y = y * tl.sigmoid(y) * m
    tl.store(y_ptr + row + at, y * tl.sigmoid(y), mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self, in_features, out_features, num_groups, multiply_weight_shape):
        super().__init__()
        self.gemm = torch.nn.Linear(in_features, out_features)
        self.group_norm = torch.nn.GroupNorm(num_groups, out_features)
        self.multiply_weight = torch.nn.Parameter(torch.randn(multiply_weight_shape))

    def forward(self, x):
        x = self.gemm(x)
        y = torch.empty_like(x)
        norm = self.group_norm
        groups, size = norm.num_groups, norm.num_channels // norm.num_groups
        group_norm_swish_kernel[(x.shape[0], triton.cdiv(groups, GROUPS))](
            x,
            norm.weight,
            norm.bias,
            self.multiply_weight,
            y,
            groups,
            size,
            norm.eps,
            GROUPS=GROUPS,
            SIZE=triton.next_power_of_2(size),
            num_warps=4,
        )
        return y
