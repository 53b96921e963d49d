import torch
import triton
import triton.language as tl

@triton.jit
def row_sum_kernel(x_ptr, y_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y_ptr + row, tl.sum(tl.load(x_ptr + row * N + c, mask=c < N, other=0.0), axis=0))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        row_sum_kernel[(x.shape[0], triton.cdiv(x.shape[1], 128))](x, y, x.shape[1], BLOCK=128)
        return y
