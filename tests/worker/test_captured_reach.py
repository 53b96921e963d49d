"""Captured tensors of the wrong size: refused by name and line; honest ones of any size pass."""

import pytest
import torch
from problem_files import attention, mask_mod, score_mod

from hotloop.errors import ProblemError
from hotloop.worker.attention_reference import AttentionReference
from hotloop.worker.captured_reach import check_reach


@pytest.mark.parametrize(
    ("loaded", "message"),
    [
        (
            mask_mod("doc[q_idx] == doc[kv_idx]", "doc = torch.zeros(S - 1, dtype=torch.int32)"),
            r"p: mask_mod line 5: captured tensor 'doc' of shape \(31,\) is read past its end "
            r"\(index 31 .*\); make it as large as the positions: B 2, H 4, S 32, Skv 32",
        ),
        (score_mod("score + slope[h]", "slope = torch.zeros(H - 1)"), "'slope' of shape"),
        (score_mod("score + bias[q_idx - kv_idx + S - 1]", "bias = torch.zeros(S)"), "'bias'"),
        (
            score_mod("score + bias[h, q_idx, kv_idx]", "bias = torch.zeros(H, S, S - 2)"),
            r"'bias' of shape \(4, 32, 30\)",
        ),
        (
            score_mod(
                "score + bias[bucket[kv_idx]]", "bucket, bias = torch.arange(S), torch.zeros(9)"
            ),
            r"'bias' of shape \(9,\)",
        ),
        (score_mod("score + bias[h][q_idx]", "bias = torch.zeros(H, 5)"), "a part of a captured"),
    ],
)
def test_a_tensor_that_is_too_small_is_named(loaded, message):
    with pytest.raises(ProblemError, match=message) as info:
        check_reach(loaded)
    assert "\n" not in str(info.value)


@pytest.mark.parametrize(
    "loaded",
    [
        mask_mod("doc[q_idx] == doc[kv_idx]", "doc = torch.zeros(S, dtype=torch.int32)"),
        mask_mod("doc[q_idx] == doc[kv_idx]", "doc = torch.zeros(10 * S, dtype=torch.int32)"),
        score_mod("score + bias[q_idx - kv_idx]", "bias = torch.zeros(S)"),  # from the end
        score_mod("score + bias[bucket[kv_idx]]", "bucket, bias = torch.arange(S), torch.zeros(S)"),
        attention(""),
    ],
)
def test_tensors_that_are_large_enough_pass(loaded):
    before = {n: t for n, t in loaded.namespace.items() if isinstance(t, torch.Tensor)}
    check_reach(loaded)
    assert all(loaded.namespace[name] is tensor for name, tensor in before.items())


def test_other_errors_are_left_to_the_reference():
    loaded = score_mod("score + undefined")
    check_reach(loaded)
    with pytest.raises(ProblemError, match="NameError"):
        AttentionReference(loaded)


def test_the_reference_refuses_before_it_computes():
    loaded = mask_mod("doc[q_idx] == doc[kv_idx]", "doc = torch.zeros(7, dtype=torch.int32)")
    with pytest.raises(ProblemError, match="captured tensor 'doc'"):
        AttentionReference(loaded)
