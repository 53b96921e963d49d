"""A problem of any number of elements, x * 2 + 1, and a kernel for it."""

SOURCE = """
import torch
ROWS, COLUMNS = 40, 48
class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2 + 1
def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]
"""
KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def scale_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + i, mask=inside)
    tl.store(y_ptr + i, x * 2 + 1, mask=inside)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        blocks = triton.cdiv(x.numel(), 128)
        scale_kernel[(blocks,)](x, y, x.numel(), 128)
        return y
"""
