"""Kernels around what only ranks or looks up: rows of 0 rank by luck, a lookup moves values."""

from __future__ import annotations

import pytest
from scaled_rows import candidate, spoilt

from hotloop.core.problem import Problem, ProblemKind
from hotloop.core.verdict import Status, Tier, Verdict
from hotloop.verify import LocalVerifier

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROUTER = """
import torch
TOKENS, WIDTH, EXPERTS = 96, 64, 16
class Model(torch.nn.Module):
    def __init__(self, width, experts):
        super().__init__()
        self.gate = torch.nn.Linear(width, experts, bias=False)
    def forward(self, x):
        v, i = torch.topk(torch.softmax(self.gate(x), -1), 2, -1)
        return v / v.sum(-1, keepdim=True), i
def get_inputs():
    return [torch.randn(TOKENS, WIDTH)]
def get_init_inputs():
    return [WIDTH, EXPERTS]
"""
ROUTES = """
import torch
import triton
import triton.language as tl

@triton.jit
def route(x, w, ov, oi, T, D, E: tl.constexpr, BT: tl.constexpr, BD: tl.constexpr):
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    e = tl.arange(0, E)
    acc = tl.zeros((BT, E), tl.float32)
    for d0 in range(0, D, BD):
        d = d0 + tl.arange(0, BD)
        a = tl.load(x + t[:, None] * D + d[None, :], mask=(t < T)[:, None], other=0.0)
        acc = tl.dot(a, tl.load(w + e[None, :] * D + d[:, None]), acc, input_precision="ieee")
    first, i1 = tl.max(acc, 1, return_indices=True)
    rest = tl.where(e[None, :] == i1[:, None], -float("inf"), acc)
    second, i2 = tl.max(rest, 1, return_indices=True)
    q = tl.exp(second - first)
    tl.store(ov + t * 2, 1.0 / (1.0 + q), mask=t < T)
    tl.store(ov + t * 2 + 1, q / (1.0 + q), mask=t < T)
    tl.store(oi + t * 2, i1.to(tl.int64), mask=t < T)
    tl.store(oi + t * 2 + 1, i2.to(tl.int64), mask=t < T)

class ModelNew(torch.nn.Module):
    def __init__(self, width, experts):
        super().__init__()
        self.gate = torch.nn.Linear(width, experts, bias=False)

    def forward(self, x):
        n, d = x.shape
        v = torch.empty(n, 2, device=x.device)
        i = torch.empty(n, 2, dtype=torch.int64, device=x.device)
        w = self.gate.weight
        route[(triton.cdiv(n, 32),)](x, w, v, i, n, d, w.shape[0], 32, 32)
        return v, i
"""
LOOKUP = """
import torch
class Model(torch.nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.words = torch.nn.Embedding(words, width)
        self.norm = torch.nn.LayerNorm(width)
    def forward(self, ids):
        return self.norm(self.words(ids))
def get_inputs():
    return [torch.randint(0, 50, (8, 16))]
def get_init_inputs():
    return [50, 32]
"""
NORM = """
import torch
import triton
import triton.language as tl

@triton.jit
def norm(x_ptr, w_ptr, b_ptr, y_ptr, D: tl.constexpr):
    at = tl.program_id(0) * D + tl.arange(0, D)
    x = tl.load(x_ptr + at)
    x -= tl.sum(x, 0) / D
    x *= tl.rsqrt(tl.sum(x * x, 0) / D + 1e-5)
    d = tl.arange(0, D)
    tl.store(y_ptr + at, x * tl.load(w_ptr + d) + tl.load(b_ptr + d))

class ModelNew(torch.nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.words = torch.nn.Embedding(words, width)
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, ids):
        x = self.words(ids)
        y = torch.empty_like(x)
        norm[(ids.numel(),)](x, self.norm.weight, self.norm.bias, y, x.shape[-1])
        return y
"""
BY_TORCH = ("x = self.words(ids)", "x = self.norm(self.words(ids))")
LAUNCH = "norm[(ids.numel(),)](x, self.norm.weight, self.norm.bias, y, x.shape[-1])"
SECOND_BEST = ("tl.store(oi + t * 2 + 1, i2", "tl.store(oi + t * 2 + 1, i1")


VALUES = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.topk(x, 2, -1)[0]
def get_inputs():
    return [torch.randn(96, 24).half()]
"""
TOP = """
import torch
import triton
import triton.language as tl

@triton.jit
def top(x_ptr, o_ptr, n, W, E: tl.constexpr, B: tl.constexpr):
    t = tl.program_id(0) * B + tl.arange(0, B)
    e = tl.arange(0, E)
    inside = (t < n)[:, None] & (e < W)[None, :]
    at = x_ptr + t[:, None] * W + e[None, :]
    x = tl.load(at, mask=inside, other=-float("inf")).to(tl.float32)
    first, i = tl.max(x, 1, return_indices=True)
    rest = tl.where(e[None, :] == i[:, None], -float("inf"), x)
    tl.store(o_ptr + t * 2, first, mask=t < n)
    tl.store(o_ptr + t * 2 + 1, tl.max(rest, 1), mask=t < n)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        n, w = x.shape
        o = torch.empty(n, 2, device=x.device, dtype=x.dtype)
        top[(triton.cdiv(n, 32),)](x, o, n, w, 32, 32)
        return o
"""
PADS_WITH_0 = ('other=-float("inf")', "other=0.0")


def judged(source: str, kernel: str) -> Verdict:
    judge = LocalVerifier("cpu", call_timeout_s=30.0)
    try:
        judge.load(Problem(name="m", kind=ProblemKind.KERNELBENCH, source=source))
        return judge.verify(candidate(kernel, "kernel.py"), Tier.FAST)
    finally:
        judge.close()


def test_ranks_of_computed_scores_pass() -> None:
    verdict = judged(ROUTER, ROUTES)
    assert verdict.status is Status.PASSED, verdict.message


def test_a_wrong_rank_does_not() -> None:
    assert judged(ROUTER, spoilt(ROUTES, SECOND_BEST)).status is Status.INCORRECT_NUMERICAL


def test_the_largest_values_are_judged_where_some_are_equal() -> None:
    assert judged(VALUES, TOP).status is Status.PASSED
    assert judged(VALUES, spoilt(TOP, PADS_WITH_0)).status is Status.INCORRECT_NUMERICAL


def test_torch_may_look_up_what_a_kernel_normalises() -> None:
    verdict = judged(LOOKUP, NORM)
    assert verdict.status is Status.PASSED, verdict.message


@pytest.mark.parametrize("change", [BY_TORCH, (LAUNCH, "y = self.norm(x)")])
def test_but_not_normalise_it(change: tuple[str, str]) -> None:
    assert judged(LOOKUP, spoilt(NORM, change)).status is not Status.PASSED


def test_a_lookup_alone_is_the_kernels_work() -> None:
    only = LOOKUP.replace("self.norm(self.words(ids))", "self.words(ids)")
    copies = spoilt(NORM, ("x -= tl.sum(x, 0) / D", "pass"), (LAUNCH, "return x"))
    verdict = judged(only, copies)
    assert verdict.status in (Status.REWARD_HACK, Status.REJECTED_STATIC), verdict.message
