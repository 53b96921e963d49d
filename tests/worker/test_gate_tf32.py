"""Where a policy allows TF32, the gate's limits are those of operands rounded to nearest.

Tensor cores cut off what TF32 has no room for, which is beyond them: `test_tf32_cut.py`.
"""

from functools import cache

import pytest
import torch
from problem_files import attention, forward

from hotloop.core.problem import Policy
from hotloop.problems.precision import with_precision
from hotloop.worker.compare import gate, make_bound
from hotloop.worker.load import load_problem
from hotloop.worker.precision import PRECISIONS
from hotloop.worker.reference import build_reference
from hotloop.worker.sequential import round_to_tf32

PROBLEMS = {
    "product": forward("x @ y", "torch.randn(48, 256)", "torch.randn(256, 48)").problem,
    "attention": attention("dtype = 'float32'\n").problem,
}


def cut(x):
    bits = x.contiguous().view(torch.int32)
    return (bits & ~0x1FFF).view(torch.float32)


def full(x):
    return x


@cache
def judging(name, policy, profile):
    """Return one draw's inputs, its golden and its bound under a policy."""
    reference = build_reference(load_problem(with_precision(PROBLEMS[name], policy), device="cpu"))
    draw = reference.draw(3, profile)
    (golden,) = reference.golden(draw)
    members = [outputs[0] for outputs in reference.envelope(draw).values()]
    return draw.inputs, golden, make_bound(golden, members, torch.float32, exact=False)


def judged(name, policy, run, profile):
    """Return the gate's answer for `run(inputs)` under a policy."""
    inputs, golden, bound = judging(name, policy, profile)
    return gate(run(*inputs), golden, bound).passed


def product(rounding):
    return lambda x, y: rounding(x) @ rounding(y)


def attend(rounding):
    def run(q, k, v):
        weights = (rounding(q) @ rounding(k).mT * q.shape[-1] ** -0.5).softmax(-1)
        return rounding(weights) @ rounding(v)

    return run


@pytest.mark.parametrize("policy", ["as_shipped", "strict", "tf32"])
@pytest.mark.parametrize("profile", ["shipped", "positive_mean"])
def test_products(policy, profile):
    assert judged("product", policy, product(full), profile)
    assert judged("product", policy, product(round_to_tf32), profile) == (policy == "tf32")
    assert not judged("product", policy, product(cut), profile)


@pytest.mark.parametrize("policy", ["as_shipped", "strict", "tf32"])
def test_attention(policy):
    assert judged("attention", policy, attend(full), "normal")
    assert judged("attention", policy, attend(round_to_tf32), "normal") == (policy == "tf32")


@pytest.mark.parametrize("name", PRECISIONS)
def test_what_coordinator_and_judge_know_of_a_policy_is_the_same(name):
    assert Policy(precision=name).allows_tf32_products == PRECISIONS[name].matmul_tf32
