"""A wrong attention kernel is told the length at which it becomes wrong, if it follows lengths."""

from collections.abc import Iterator

import pytest
from scaled_rows import candidate, spoilt, verdict

from hotloop.core.verdict import Status
from hotloop.problems import load_problem_spec
from hotloop.verify import LocalVerifier

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

PROBLEM = """B, H, S, D = 1, 2, 64, 16
dtype = "float32"


def mask_mod(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx
"""

KERNEL = """import torch
import triton
import triton.language as tl


@triton.jit
def attend(q_ptr, k_ptr, v_ptr, o_ptr, S, D: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    base = tl.program_id(1) * S * D
    d = tl.arange(0, D)
    inside = rows[:, None] < S
    q = tl.load(q_ptr + base + rows[:, None] * D + d[None, :], mask=inside, other=0.0)
    top = tl.full((BLOCK,), -1e30, tl.float32)
    norm = tl.zeros((BLOCK,), tl.float32)
    out = tl.zeros((BLOCK, D), tl.float32)
    for start in range(0, S, BLOCK):
        keys = start + tl.arange(0, BLOCK)
        there = keys[:, None] < S
        k = tl.load(k_ptr + base + keys[:, None] * D + d[None, :], mask=there, other=0.0)
        v = tl.load(v_ptr + base + keys[:, None] * D + d[None, :], mask=there, other=0.0)
        scores = tl.sum(q[:, None, :] * k[None, :, :], axis=2) * 0.25
        seen = (rows[:, None] >= keys[None, :]) & (keys[None, :] < S)
        scores = tl.where(seen, scores, -1e30)
        higher = tl.maximum(top, tl.max(scores, axis=1))
        rescale = tl.exp(top - higher)
        weights = tl.exp(scores - higher[:, None])
        norm = norm * rescale + tl.sum(weights, axis=1)
        out = out * rescale[:, None] + tl.sum(weights[:, :, None] * v[None, :, :], axis=1)
        top = higher
    out = out / norm[:, None]
    tl.store(o_ptr + base + rows[:, None] * D + d[None, :], out, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        B, H, S, D = q.shape
        out = torch.empty_like(q)
        attend[(triton.cdiv(S, 16), B * H)](q, k, v, out, S, D, 16)
        return out
"""
NO_RESCALE = ("out = out * rescale[:, None] + ", "out = out + ")


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalVerifier]:
    path = tmp_path_factory.mktemp("attention") / "causal.py"
    path.write_text(PROBLEM)
    judge = LocalVerifier("cpu", call_timeout_s=30.0)
    try:
        judge.load(load_problem_spec(path, device="cpu"))
        yield judge
    finally:
        judge.close()


def details_of(judge: LocalVerifier, *changes: tuple[str, str]) -> dict:
    found = verdict(judge, candidate(spoilt(KERNEL, *changes), "kernel.py"))
    assert found.status is Status.INCORRECT_NUMERICAL, found.message
    assert found.evidence is not None
    return dict(found.evidence.details)


def test_a_bug_between_blocks_is_told_by_the_length_that_has_one_block(
    judge: LocalVerifier,
) -> None:
    assert verdict(judge, candidate(KERNEL, "kernel.py")).status is Status.PASSED
    assert details_of(judge, NO_RESCALE)["smaller"] == {"passes": {"S": 16}, "fails": {"S": 32}}


def test_a_kernel_with_its_length_written_in_is_told_no_length(judge: LocalVerifier) -> None:
    written_in = ("        out = torch.empty_like(q)", "        S, out = 64, torch.empty_like(q)")
    assert "smaller" not in details_of(judge, NO_RESCALE, written_in)

    # the shorter calls left the judge's buffers as they were
    assert verdict(judge, candidate(KERNEL, "kernel.py")).status is Status.PASSED


def test_a_usual_mistake_is_recognised_in_a_kernel(judge: LocalVerifier) -> None:
    no_mask = ("(rows[:, None] >= keys[None, :]) & (keys[None, :] < S)", "keys[None, :] < S")
    assert details_of(judge, no_mask)["mistake"] == "no_mask"
