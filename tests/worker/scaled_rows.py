"""One small problem, y = x * scale + 1, and kernels for it in both languages, to be spoilt."""

from __future__ import annotations

from pathlib import Path

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.problem import Problem
from hotloop.core.verdict import Tier, Verdict
from hotloop.problems import load_problem_spec
from hotloop.verify import LocalVerifier

PROBLEM = """
import torch

ROWS, COLUMNS = 8, 48


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.randn(COLUMNS))

    def forward(self, x):
        return x * self.scale + 1


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
"""

TRITON = """
import math
import os
import sys
import time

import torch
import triton
import triton.language as tl

@triton.jit
def scale_kernel(x_ptr, scale_ptr, y_ptr, n, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + i, mask=inside)
    y = x * tl.load(scale_ptr + i % COLUMNS) + 1
    tl.store(y_ptr + i, y, mask=inside)

class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.empty(COLUMNS))

    def forward(self, x):
        y = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 256),)
        scale_kernel[grid](x, self.scale, y, x.numel(), x.shape[1], 256)
        return y
"""

CUDA = """/* {
  "inputs":  {"x": ["ROWS", "COLUMNS"]},
  "state":   {"scale": ["COLUMNS"]},
  "outputs": {"y": {"shape": ["ROWS", "COLUMNS"], "dtype": "float32"}},
  "scratch": {"scaled": {"shape": ["ROWS", "COLUMNS"], "dtype": "float32"}},
  "sizes":   {"N": "ROWS * COLUMNS"},
  "kernels": [
    {"name": "multiply", "grid": ["cdiv(COLUMNS, 32)", "cdiv(ROWS, 8)"], "block": [32, 8],
     "args": ["x", "scale", "scaled", "ROWS", "COLUMNS"]},
    {"name": "add", "grid": ["cdiv(N, 256) + 1"], "block": [256],
     "args": ["scaled", "y", {"int64": "N"}, {"float32": 1}]}
  ]
} */
extern "C" __global__ void multiply(const float* x, const float* scale, float* scaled, int rows,
                                    int columns) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int i = row * columns + column;
  if (row < rows && column < columns) scaled[i] = x[i] * scale[column];
}

extern "C" __global__ void add(const float* scaled, float* y, long long n, float amount) {
  long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i < n) y[i] = scaled[i] + amount;
}
"""


def write_problem(folder: Path) -> Path:
    """Write the problem file and return its path."""
    path = folder / "scaled_rows.py"
    path.write_text(PROBLEM)
    return path


def problem(path: Path, device: str, *, rows: int, columns: int) -> Problem:
    """Return the problem at these sizes."""
    return load_problem_spec(path, device=device, settings={"ROWS": rows, "COLUMNS": columns})


def spoilt(source: str, *changes: tuple[str, str]) -> str:
    """Return `source` with each (old, new) put in; every `old` must be there once."""
    for old, new in changes:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return source


def triton(*changes: tuple[str, str], columns: int = 48) -> Candidate:
    """Return the Triton kernel with changes."""
    text = spoilt(TRITON, *changes).replace("torch.empty(COLUMNS)", f"torch.empty({columns})")
    return candidate(text, "kernel.py")


def cuda(*changes: tuple[str, str]) -> Candidate:
    """Return the CUDA kernels with changes."""
    return candidate(spoilt(CUDA, *changes), "kernel.cu")


def candidate(text: str, entry: str) -> Candidate:
    """Return a candidate of one file."""
    language = "cuda" if entry.endswith(".cu") else "triton"
    return Candidate(language=language, sources=(SourceFile(path=entry, text=text),), entry=entry)


def forward(*lines: str) -> tuple[str, str]:
    """Return the change that puts lines at the start of forward.

    They begin with a look at the values: a compile lane, whose tensors have none, stops there, so
    that only the run meets the rest.
    """
    start = "    def forward(self, x):\n"
    body = "".join(f"        {line}\n" for line in ("float(x.sum())", *lines))
    return start, start + body


def verdict(judge: LocalVerifier, kernel: Candidate) -> Verdict:
    """Return the judge's verdict at the fast tier."""
    return judge.verify(kernel, Tier.FAST)
