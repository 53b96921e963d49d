import torch
import triton
import triton.language as tl


@triton.jit
def exp_kernel(x_ptr, y_ptr, rows, columns, stride_r, stride_c, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_r + i * stride_c, mask=i < columns)
    tl.store(y_ptr + row * columns + i, tl.exp(x * 0.5), mask=i < columns)


def exp_half(x):
    y = torch.empty(x.shape, device=x.device)
    rows, columns = x.shape
    exp_kernel[(rows,)](x, y, rows, columns, x.stride(0), x.stride(1), 32)
    return y
