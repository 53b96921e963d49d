import torch
import triton
import triton.language as tl


@triton.jit
def bias_relu_kernel(x_ptr, bias_ptr, y_ptr, n, N: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n) + tl.load(bias_ptr + i % N)
    tl.store(y_ptr + i, tl.maximum(x, 0.0), mask=i < n)


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def bias_relu(x, bias):
    y = torch.empty_like(x)
    bias_relu_kernel[(triton.cdiv(x.numel(), 128),)](x, bias, y, x.numel(), x.shape[1], 128)
    return y


def copied(x):
    y = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), 128)
    return y
