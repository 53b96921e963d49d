"""Mistakes of attention kernels are named when they explain the output, and only then."""

import dataclasses
import math

import pytest
import torch
from problem_files import attention

from hotloop.worker.attention_math import tiled
from hotloop.worker.cases import Case
from hotloop.worker.compare import gate, make_bound
from hotloop.worker.correctness import case_result
from hotloop.worker.diagnosis import Wrong, diagnose
from hotloop.worker.reference import build_reference

MASK = "def mask_mod(b, h, q_idx, kv_idx):\n    return {}\n"
SCORE = "def score_mod(score, b, h, q_idx, kv_idx):\n    return {}\n"
CAUSAL = MASK.format("q_idx >= kv_idx")
RELATIVE = SCORE.format("score + 0.25 * (q_idx - kv_idx)")
SLOPES = (
    "def get_buffers(generator):\n    return {'slopes': torch.rand(H, generator=generator)}\n"
    + SCORE.format("score - slopes[h] * (q_idx - kv_idx).abs()")
)
CAPPED = SCORE.format("5.0 * torch.tanh(score / 5.0)")
CALLS = {}


def reference_of(text):
    if text not in CALLS:
        reference = build_reference(attention(text, B=2, H=4, S=100, D=32))
        draw = reference.draw(5, "normal")
        (golden,) = reference.golden(draw)
        members = [m[0] for m in reference.envelope(draw).values()]
        bound = make_bound(golden, members, members[0].dtype, exact=False)
        CALLS[text] = reference, draw, golden, bound
    return CALLS[text]


def told(text, make):
    """Return the details for the output that `make(q, k, v, mods)` gives."""
    reference, draw, golden, bound = reference_of(text)
    with reference.bound(draw.state):
        output = make(*draw.inputs, reference.mods)
    result = gate(output, golden, bound)
    assert not result.passed
    case = case_result(Case("nominal", "normal", 5, (bound,)), 0, bound, result)
    return diagnose(Wrong(case, output, golden, bound, reference, draw))


def with_mods(**changes):
    return lambda q, k, v, mods: tiled(q, k, v, dataclasses.replace(mods, **changes))


def with_score(change):
    """Wrap the score_mod: `change(mod, score, b, h, q, kv)`."""

    def make(q, k, v, mods):
        mod = mods.score_mod or (lambda s, b, h, i, j: s)
        changed = dataclasses.replace(
            mods, score_mod=lambda s, b, h, i, j: change(mod, s, b, h, i, j)
        )
        return tiled(q, k, v, changed)

    return make


def with_mask(change):
    def make(q, k, v, mods):
        mod = mods.mask_mod
        changed = dataclasses.replace(mods, mask_mod=lambda b, h, i, j: change(mod, b, h, i, j))
        return tiled(q, k, v, changed)

    return make


LN2 = math.log(2)
MISTAKES = [
    ("no_mask", CAUSAL, with_mods(mask_mod=None)),
    ("mask_inverted", CAUSAL, with_mask(lambda m, b, h, i, j: ~m(b, h, i, j))),
    ("query_index_plus_1", CAUSAL, with_mask(lambda m, b, h, i, j: m(b, h, i + 1, j))),
    ("no_scale", CAUSAL, with_mods(scale=1.0)),
    ("scale_twice", CAUSAL, with_mods(scale=1 / 32)),
    ("exp2_without_log2e", CAUSAL, with_score(lambda m, s, b, h, i, j: m(s, b, h, i, j) * LN2)),
    ("log2e_twice", RELATIVE, with_score(lambda m, s, b, h, i, j: m(s, b, h, i, j) / LN2)),
    ("no_score_mod", RELATIVE, with_mods(score_mod=None)),
    (
        "score_mod_on_log2_scores", RELATIVE,
        with_score(lambda m, s, b, h, i, j: m(s / LN2, b, h, i, j) * LN2),
    ),
    ("head_index_0", SLOPES, with_score(lambda m, s, b, h, i, j: m(s, b, h * 0, i, j))),
    (
        "key_index_within_block_32", RELATIVE,
        with_score(lambda m, s, b, h, i, j: m(s, b, h, i, j % 32)),
    ),
    ("k_and_v_exchanged", CAUSAL, lambda q, k, v, mods: tiled(q, v, k, mods)),
    ("last_36_keys_left_out", "", lambda q, k, v, mods: tiled(q, k[:, :, :64], v[:, :, :64],
                                                                mods)),
    ("score_mod_before_scale", CAPPED,
     with_score(lambda m, s, b, h, i, j: m(s * 32**0.5, b, h, i, j) * 32**-0.5)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "make"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_a_usual_mistake_is_named(name, text, make):
    details = told(text, make)
    assert details.get("mistake") == name
    assert "origin" not in details


@pytest.mark.parametrize(
    "make",
    [
        lambda q, k, v, mods: tiled(q, k, v, mods) + 0.3,
        lambda q, k, v, mods: tiled(q, k, v.roll(3, 2), mods),
        with_mods(scale=0.9),
        lambda q, k, v, mods: torch.randn_like(q),
        lambda q, k, v, mods: tiled(q, k, v, mods) * 1.2,
    ],
)
@pytest.mark.parametrize("text", [CAUSAL, SLOPES])
def test_other_errors_are_named_nothing(text, make):
    assert "mistake" not in told(text, make)


def test_nan_in_rows_that_see_no_key_is_told_apart():
    text = MASK.format("(q_idx % 7 != 3) & (q_idx >= kv_idx)")

    def masked(q, k, v, mods):
        output = tiled(q, k, v, mods)
        output[:, :, 3::7] = float("nan")
        return output

    def elsewhere(q, k, v, mods):
        output = tiled(q, k, v, mods)
        output[:, :, 3:5] = float("nan")
        return output

    assert told(text, masked)["masked_rows"] is True
    assert "masked_rows" not in told(text, elsewhere)
