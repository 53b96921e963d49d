import torch
import triton
import triton.language as tl

PARAMETERS = {"shift": "bias"}


@triton.jit
def add_relu(x, bias, out, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    y = tl.load(x + at) + tl.load(bias + tl.arange(0, N))
    tl.store(out + at, tl.maximum(y, 0.0))


class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("shift", None)

    def forward(self, x):
        out = torch.empty_like(x)
        add_relu[(x.shape[0],)](x, self.shift, out, x.shape[1])
        return out
