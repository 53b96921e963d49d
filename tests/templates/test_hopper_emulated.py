"""Generated Hopper kernels compute exact attention: every variant, on emulated hardware."""

from __future__ import annotations

import attention_variants as variants
import numpy as np
import pytest
from gluon_emulator import Settings
from graph_expressions import Builder, make_spec
from hopper_check import check_hopper

from hotloop.templates.hopper.family import HopperFamily


def _spec(score=None, mask=None, **sizes):
    return make_spec(score=score, mask=mask, **{"H": 1, "D": 64, "dtype": "bfloat16", **sizes})


@pytest.mark.parametrize("D", [64, 128])
@pytest.mark.parametrize("name", ["full", "causal", "relative", "alibi", "softcap"])
def test_every_start_of_the_common_variants_is_exact(name, D):
    build = getattr(variants, name)
    score, mask = build() if name == "full" else build(S=256, H=1)
    spec = _spec(score, mask, S=256, D=D)
    for start in HopperFamily(spec).space().starts:
        check_hopper(spec, score=score, mask=mask, **start)


@pytest.mark.parametrize("D", [16, 96, 256])
def test_other_head_sizes_are_padded_by_the_copy_engine(D):
    _, mask = variants.causal()
    check_hopper(_spec(mask=mask, S=160, D=D), mask=mask)


@pytest.mark.parametrize(("S", "Skv"), [(1, 1), (1, 300), (130, 1), (200, 333), (333, 64)])
def test_lengths_need_not_be_multiples_of_a_tile(S, Skv):
    check_hopper(_spec(S=S, Skv=Skv))


@pytest.mark.parametrize(("S", "Skv"), [(1, 300), (200, 333), (333, 200)])
def test_masks_hold_at_ragged_lengths(S, Skv):
    g = Builder()
    mask = (g.q >= g.kv) & (g.q - g.kv < 70)
    check_hopper(_spec(mask=mask, S=S, Skv=Skv, D=32), mask=mask)


def test_grouped_heads_share_keys():
    _, mask = variants.causal()
    spec = _spec(mask=mask, B=2, H=4, Hkv=2, S=130, D=32)
    check_hopper(spec, mask=mask, settings=Settings(multiprocessors=3))


@pytest.mark.parametrize("tiles", ["ranges", "lists"])
def test_documents_are_walked_by_a_map(tiles):
    _, mask = variants.document(S=300)
    doc = np.repeat([0, 3, 1, 3], [90, 10, 150, 50]).astype(np.int32)
    spec = _spec(mask=mask, B=2, S=300, D=32)
    text = check_hopper(spec, mask=mask, buffers={"doc": doc}, tiles=tiles, persistent=True)
    assert "def map_tiles(" in text


def test_a_mask_of_its_own_for_each_head_has_a_map_of_its_own():
    g = Builder()
    mask = g.read("keep", (2, 256), "bool", g.h, g.kv)
    keep = np.zeros((2, 256), dtype=bool)
    keep[0, 130:140] = keep[1, :60] = True
    spec = _spec(mask=mask, H=2, S=200, Skv=256, D=32)
    for tiles in ("ranges", "lists"):
        check_hopper(spec, mask=mask, buffers={"keep": keep}, tiles=tiles)


def test_a_window_in_the_middle_has_full_tiles_between_masked_ones():
    g = Builder()
    mask = (g.kv - g.q <= 200) & (g.q - g.kv <= 200)
    spec = _spec(mask=mask, S=640, D=16)
    for block in (128, 64):
        check_hopper(spec, mask=mask, BLOCK_N=block)


@pytest.mark.parametrize("tiles", ["ranges", "lists"])
def test_rows_that_see_no_key_give_0(tiles):
    g = Builder()
    mask = (g.read("doc", (256,), "int32", g.q).equals(g.kv // 64)) & (g.kv >= 64)
    doc = np.repeat([0, 1, 9, 2], [130, 26, 50, 50]).astype(np.int32)
    check_hopper(_spec(mask=mask, S=256, D=16), mask=mask, buffers={"doc": doc}, tiles=tiles)


def test_rows_past_a_closed_window_give_0():
    g = Builder()
    mask = g.kv - g.q >= 100
    check_hopper(_spec(mask=mask, S=300, D=16), mask=mask)


def test_sigmoid_attention():
    g = Builder()
    score, mask = g.score - 2.0, g.q >= g.kv
    check_hopper(_spec(score=score, S=200, D=32, normalize="sigmoid"), score=score)
    spec = _spec(mask=mask, S=200, D=32, normalize="sigmoid")
    check_hopper(spec, mask=mask)


def test_a_captured_bias_may_hide_keys():
    g = Builder()
    score = g.score + g.read("bias", (200, 200), "float32", g.q, g.kv)
    bias = np.random.default_rng(0).standard_normal((200, 200)).astype(np.float32)
    bias[:, :130] = bias[7] = -np.inf
    spec = _spec(score=score, S=200, D=32)
    check_hopper(spec, score=score, buffers={"bias": bias})


def test_float16():
    score, _ = variants.softcap()
    check_hopper(_spec(score=score, S=200, D=64, dtype="float16"), score=score, tanh="exp2")


def test_device_functions_are_translated():
    g = Builder()
    score = g.apply("sigmoid", g.score) * 3.0
    mask = ((g.q - g.kv) % 3).equals(0)
    text = check_hopper(_spec(score, mask, S=200, D=16), score=score, mask=mask, tiles="lists")
    assert "gl.sigmoid" not in text


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("pingpong", [True, False])
def test_any_interleaving_is_right(seed, pingpong):
    _, mask = variants.causal()
    spec = _spec(mask=mask, H=3, S=500, D=16)
    settings = Settings(seed=seed, multiprocessors=2)
    check_hopper(spec, mask=mask, settings=settings, pingpong=pingpong, persistent=True, BLOCK_N=64)
