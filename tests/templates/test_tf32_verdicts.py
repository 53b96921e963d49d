"""The built-in generator's TF32 kernels, judged: right where the policy allows it, refused else."""

from __future__ import annotations

import pytest

from hotloop.core.verdict import Status, Tier
from hotloop.problems import load_problem_spec
from hotloop.templates.builtin import family_of
from hotloop.verify import LocalVerifier

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PRODUCT = """
import torch

M, K, N = 48, 160, 64


class Model(torch.nn.Module):
    def forward(self, a, b):
        return torch.relu(a @ b)


def get_inputs():
    return [torch.randn(M, K), torch.randn(K, N)]


def get_init_inputs():
    return []
"""
ATTENTION = """
B, H, S, D = 1, 2, 80, 32
dtype = "float32"


def mask_mod(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx
"""
DECODE = """
B, H, Hkv, S, Skv, D = 1, 4, 2, 1, 512, 32
dtype = "float32"


def score_mod(score, b, h, q_idx, kv_idx):
    return score + 0.01 * (kv_idx - q_idx)
"""
PROBLEMS = {"product": PRODUCT, "attention": ATTENTION, "decode": DECODE}


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        *(("product", policy) for policy in ("as_shipped", "strict", "tf32")),
        *(("attention", policy) for policy in ("strict", "tf32")),
        ("decode", "tf32"),
    ],
)
def test_tf32_passes_under_its_policy_and_no_other(tmp_path, name, policy):
    path = tmp_path / f"{name}.py"
    path.write_text(PROBLEMS[name])
    problem = load_problem_spec(path, device="cpu", precision=policy)
    verifier = LocalVerifier("cpu", min_isolation="T0")
    try:
        info = verifier.load(problem)
        offered = family_of(info, allows_tf32=problem.policy.allows_tf32_products)
        first = offered.render(offered.space().starts[0])
        assert verifier.verify(first, Tier.FAST).status is Status.PASSED, "its own first start"
        tf32 = family_of(info, allows_tf32=True)
        verdict = verifier.verify(tf32.render(tf32.space().starts[0]), Tier.FAST)
        assert (verdict.status is Status.PASSED) == (policy == "tf32"), verdict.message
        assert policy == "tf32" or verdict.status is Status.INCORRECT_NUMERICAL
    finally:
        verifier.close()
