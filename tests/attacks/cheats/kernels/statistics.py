import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, y_ptr, mean_ptr, where_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + i, mask=i < columns, other=0.0)
    mean = tl.sum(x, axis=0) / columns
    where = tl.argmax(tl.where(i < columns, x, -float("inf")), axis=0)
    tl.store(y_ptr + row * columns + i, x - mean, mask=i < columns)
    tl.store(mean_ptr + row, mean)
    tl.store(where_ptr + row, where.to(tl.int64))


def statistics(x):
    y = torch.empty_like(x)
    mean = torch.empty(x.shape[0], device=x.device)
    where = torch.empty(x.shape[0], dtype=torch.int64, device=x.device)
    rows_kernel[(x.shape[0],)](x, y, mean, where, x.shape[1], 64)
    return y, mean, where
