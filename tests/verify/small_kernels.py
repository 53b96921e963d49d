"""Two small problems with a right kernel for each, and the candidate that a text makes."""

from hotloop.core.candidate import Candidate, SourceFile

DOUBLE_PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2
def get_inputs():
    return [torch.rand(7, 33)]
def get_init_inputs():
    return []
"""
DOUBLE = """
import torch, triton
import triton.language as tl

@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        double[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
        return y
"""
ROWS_PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x / (1 + x.abs().sum(dim=1, keepdim=True))
def get_inputs():
    return [torch.rand(5, 33) + 0.5]
def get_init_inputs():
    return []
"""
ROWS = """
import torch, triton
import triton.language as tl

@triton.jit
def normalise(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    values = tl.load(x + row * n + i, mask=i < n, other=0.0)
    tl.store(y + row * n + i, values / (1.0 + tl.sum(tl.abs(values))), mask=i < n)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        normalise[(x.shape[0],)](x, y, x.shape[1], BLOCK=64)
        return y
"""


def candidate(text):
    """Return a candidate of one Triton file."""
    return Candidate(language="triton", sources=(SourceFile(path="kernel.py", text=text),))
