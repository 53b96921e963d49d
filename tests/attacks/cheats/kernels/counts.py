import torch  # noqa: F401  for the rows
import triton
import triton.language as tl


@triton.jit
def parts_kernel(x_ptr, y_ptr, columns, HALF: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    x = tl.load(x_ptr + row * columns + part * HALF + tl.arange(0, HALF))
    tl.store(y_ptr + row * 2 + part, tl.sum(x * x, axis=0))


def parts(x, y):
    parts_kernel[(x.shape[0], 2)](x, y, x.shape[1], 32)
    return y
