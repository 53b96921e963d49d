"""The largest loss of KernelBench at the final tier, on a GPU that only just holds it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from scaled_rows import candidate

from hotloop.core.problem import Problem, ProblemKind
from hotloop.core.verdict import Status, Tier
from hotloop.verify import LocalVerifier

NEEDED_BYTES = 76 << 30
"""See `Session.fresh_books`: 74 GiB at the final tier, and a little for fragments."""
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="needs an NVIDIA GPU"),
]

SOURCE = """
import torch

SIDE = 32768


class Model(torch.nn.Module):
    def forward(self, predictions, targets):
        return torch.nn.functional.smooth_l1_loss(predictions, targets)


def get_inputs():
    return [torch.rand(SIDE, SIDE) * torch.rand(()), torch.rand(SIDE, SIDE)]
"""
KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def terms(p_ptr, t_ptr, sums_ptr, n, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * BLOCK * STEPS
    total = tl.zeros([BLOCK], tl.float32)
    for step in range(STEPS):
        i = start + step * BLOCK + tl.arange(0, BLOCK)
        inside = i < n
        d = tl.abs(tl.load(p_ptr + i, mask=inside) - tl.load(t_ptr + i, mask=inside))
        total += tl.where(inside, tl.where(d < 1, 0.5 * d * d, d - 0.5), 0)
    tl.store(sums_ptr + tl.program_id(0), tl.sum(total))


@triton.jit
def mean(sums_ptr, y_ptr, count, n, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, count, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(sums_ptr + i, mask=i < count, other=0.0)
    tl.store(y_ptr, tl.sum(total) / n)


class ModelNew(torch.nn.Module):
    def forward(self, predictions, targets):
        n = predictions.numel()
        count = triton.cdiv(n, 1024 * 32)
        sums = torch.empty(count, device=predictions.device)
        y = torch.empty((), device=predictions.device)
        terms[(count,)](predictions, targets, sums, n, BLOCK=1024, STEPS=32)
        mean[(1,)](sums, y, count, n, BLOCK=1024)
        return y
"""


def test_a_loss_of_two_inputs_of_4_gib_gets_its_final_verdict() -> None:
    if torch.cuda.mem_get_info()[0] < NEEDED_BYTES:
        pytest.skip(f"needs {NEEDED_BYTES >> 30} GiB of free GPU memory")
    judge = LocalVerifier("cuda")
    try:
        judge.load(Problem(name="large_loss", kind=ProblemKind.KERNELBENCH, source=SOURCE))
        for tier in (Tier.FAST, Tier.FINAL, Tier.FAST):
            found = judge.verify(candidate(KERNEL, "kernel.py"), tier)
            assert found.status is Status.PASSED, found.message
    finally:
        judge.close()
