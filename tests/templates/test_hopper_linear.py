"""A bias that is linear in the key is left to the exponent, and no weight is lost by that."""

from __future__ import annotations

import math

import attention_variants as variants
import numpy as np
import pytest
import torch
from attention_check import TOLERANCE, draw, exact, relative_error
from gluon_emulator import run_gluon
from graph_expressions import Builder, make_spec
from hopper_check import check_hopper, source

from hotloop.templates.attention.linear_bias import MAX_EXCESS_LOG2, STRIDE, LinearForm
from hotloop.templates.attention.score import LOG2_E

LEFT_TO_THE_EXPONENT = "def add_bias("


def _spec(score, mask=None, **sizes):
    sizes = {"H": 1, "D": 32, "S": 300, "dtype": "bfloat16", **sizes}
    return make_spec(score=score, mask=mask, **sizes)


def _sloped(slope: float):
    g = Builder()
    return g.score + slope * (g.kv - g.q)


@pytest.mark.parametrize("slope", [1e-4, -0.3, 1.0, -1.0, 5.0, -5.0])
def test_slopes_of_both_signs_are_exact(slope):
    score = _sloped(slope)
    assert LEFT_TO_THE_EXPONENT in check_hopper(_spec(score), score=score)


@pytest.mark.parametrize("block", [64, 128])
def test_heads_have_slopes_of_their_own_under_masks(block):
    score, _ = variants.alibi(S=300, H=4)
    _, causal = variants.causal()
    spec = _spec(score, causal, H=4, Hkv=2)
    assert LEFT_TO_THE_EXPONENT in check_hopper(spec, score=score, mask=causal, BLOCK_N=block)
    g = Builder()
    window = (g.kv - g.q <= 90) & (g.q - g.kv <= 40) & (g.kv >= 70)  # some rows see no key
    check_hopper(_spec(score, window, H=4), score=score, mask=window, BLOCK_N=block)


def test_float16_weights_take_no_more_than_the_maximum():
    """They end at 2**-24: what the causal edge hides would count, and rows would be 0."""
    score, mask = _sloped(1.0), variants.causal()[1]
    spec = _spec(score, mask, S=256, dtype="float16")
    text = check_hopper(spec, score=score, mask=mask, BLOCK_N=128)
    assert LEFT_TO_THE_EXPONENT not in text
    same = _spec(score, mask, S=256, dtype="bfloat16")
    assert LEFT_TO_THE_EXPONENT in check_hopper(same, score=score, mask=mask, BLOCK_N=128)


def test_documents_are_walked_by_a_map():
    score = _sloped(-0.5)
    _, mask = variants.document(S=300)
    doc = np.repeat([0, 3, 1, 3], [90, 10, 150, 50]).astype(np.int32)
    text = check_hopper(_spec(score, mask), score=score, mask=mask, buffers={"doc": doc})
    assert LEFT_TO_THE_EXPONENT in text


def test_two_terms_make_one_slope():
    g = Builder()
    score = g.score * 0.5 + 0.25 * (g.kv - g.q) + 2.0 ** (-(g.h + 1.0)) * g.kv
    assert LEFT_TO_THE_EXPONENT in check_hopper(_spec(score, H=2), score=score)


def test_other_biases_are_added_before_the_maximum():
    g = Builder()
    steep = _sloped(6.0)
    assert LEFT_TO_THE_EXPONENT not in check_hopper(_spec(steep), score=steep)
    both = g.score + 0.1 * (g.kv - g.q) + g.read("bias", (300,), "float32", g.kv)
    bias = np.random.default_rng(0).standard_normal(300).astype(np.float32)
    text = check_hopper(_spec(both), score=both, buffers={"bias": bias})
    assert LEFT_TO_THE_EXPONENT not in text
    unknown = g.score + g.read("slopes", (1,), "float32", g.h) * (g.kv - g.q)
    slopes = np.array([0.7], np.float32)  # a captured number may be of any size
    text = check_hopper(_spec(unknown), score=unknown, buffers={"slopes": slopes})
    assert LEFT_TO_THE_EXPONENT not in text


@pytest.mark.parametrize("slope", [0.004, 0.3, 0.7, 1.0, 2.0, 5.5])
@pytest.mark.parametrize("block", [64, 128, 256])
def test_groups_are_as_large_as_the_limit_allows(slope, block):
    form = LinearForm("qk", "1.0", "slope", False, slope * LOG2_E)
    group = form.group(block)
    assert math.log2(group).is_integer()
    assert form.magnitude * (group - STRIDE) <= MAX_EXCESS_LOG2
    assert group == block or form.magnitude * (2 * group - STRIDE) > MAX_EXCESS_LOG2


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # a sum of no weights is divided by
def test_a_group_beyond_the_limit_loses_weights():
    """The limit is needed: a key that is only large before its bias would push all others out."""
    score = _sloped(-1.0)
    spec = _spec(score, S=256)
    inputs = [np.full_like(x, 4.25) for x in draw(spec, seed=5)[:2]] + [draw(spec, seed=5)[2]]
    inputs[1][:, :, np.arange(256) % 128 != 120] = 0.0
    tensors = [torch.from_numpy(x).to(torch.bfloat16) for x in inputs]
    want = exact(spec, inputs, {}, score=score, mask=None)
    text = source(spec, BLOCK_N=128)
    assert relative_error(run_gluon(text, tensors, state={}), want) < TOLERANCE["bfloat16"]
    wide = text.replace("GROUP = gl.constexpr(32)", "GROUP = gl.constexpr(128)")
    assert not relative_error(run_gluon(wide, tensors, state={}), want) < 0.5
