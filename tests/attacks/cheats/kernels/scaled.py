import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, scale_ptr, y_ptr, n, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, x * tl.load(scale_ptr + i % COLUMNS) + 1, mask=i < n)


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def scaled(x, scale):
    y = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), 256),)
    scale_kernel[grid](x, scale, y, x.numel(), x.shape[1], 256)
    return y


def copied(x):
    y = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), 256)
    return y
