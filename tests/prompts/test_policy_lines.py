"""What the policy line says of TF32 is what PyTorch was seen to do at these sizes."""

from dataclasses import replace

import pytest
from prompt_cases import norm_task

from hotloop.core.problem import Policy
from hotloop.prompts.task import policy_lines


def precision_line(eager_tf32, **policy):
    info = replace(norm_task().info, eager_tf32=eager_tf32)
    return policy_lines(Policy(**policy), info)[0]


@pytest.mark.parametrize(
    ("seen", "words"),
    [(True, "TF32 is exact enough"), (False, "TF32 products are not accurate enough")],
)
def test_what_was_seen_is_said(seen, words):
    assert words in precision_line(seen)


def test_nothing_is_said_of_convolutions_where_there_are_none():
    assert "convolution" not in precision_line(None)


def test_another_policy_says_its_own():
    assert "no TF32" in precision_line(None, precision="strict")


def test_tf32_in_products_does_not_mean_tf32_in_convolutions_that_pytorch_makes_in_full():
    line = precision_line(False, precision="tf32")
    assert "TF32 products of float32 values are allowed" in line
    assert "TF32 is not accurate enough for them" in line
    assert "TF32 products are not accurate" not in line, "the line would contradict itself"


def test_every_policy_is_told_apart():
    names = ("as_shipped", "strict", "tf32", "bf16", "fp16")
    assert len({precision_line(None, precision=name) for name in names}) == len(names)
    assert not any(precision_line(None, precision=n) == f"precision: {n}" for n in names)
