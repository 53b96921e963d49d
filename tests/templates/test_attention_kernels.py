"""Generated attention kernels, run in Triton's interpreter against float64."""

from __future__ import annotations

import attention_variants as variants
import numpy as np
from attention_check import check
from graph_expressions import Builder, make_spec

SMALL = {"BLOCK_M": 64, "BLOCK_N": 32}


def _run(interpreter, score=None, mask=None, *, buffers=None, point=None, **sizes):
    spec = make_spec(score=score, mask=mask, **sizes)
    point = {**SMALL, **(point or {})}
    return check(interpreter, spec, score=score, mask=mask, buffers=buffers, **point)


def test_each_variant_of_the_examples(interpreter):
    documents = np.sort(np.random.default_rng(0).integers(0, 4, 128)).astype(np.int32)
    for name in ("full", "causal", "relative", "alibi", "document", "softcap"):
        score, mask = getattr(variants, name)()
        buffers = {"doc": documents} if name == "document" else {}
        _run(interpreter, score, mask, buffers=buffers)


def test_window_has_masked_tiles_on_both_sides_of_full_ones(interpreter):
    g = Builder()
    mask = (g.q >= g.kv) & (g.q - g.kv <= 70)
    source = _run(interpreter, mask=mask, S=160, point={"BLOCK_M": 32, "loads": "pointer"})
    assert "gap_at" in source


def test_prefix_lm_by_closed_form_and_by_map(interpreter):
    g = Builder()
    mask = (g.kv < 40) | (g.q >= g.kv)
    for tiles in ("closed", "ranges", "lists"):
        _run(interpreter, mask=mask, S=128, point={"tiles": tiles})


def test_document_and_causal_by_every_structure(interpreter):
    g = Builder()
    doc = [g.read("doc", (160,), "int32", i) for i in (g.q, g.kv)]
    mask = doc[0].equals(doc[1]) & (g.q >= g.kv)
    documents = np.repeat(np.arange(5), 32).astype(np.int32)
    for point in (
        {"tiles": "closed"},
        {"tiles": "ranges", "row_order": "rows"},
        {"tiles": "ranges", "full_tiles": "masked"},
        {"tiles": "lists", "row_order": "sorted"},
    ):
        _run(interpreter, mask=mask, buffers={"doc": documents}, S=160, point=point)


def test_lengths_that_are_no_multiple_of_a_tile(interpreter):
    g = Builder()
    mask = g.q + 11 >= g.kv
    for loads in ("tma", "pointer"):
        for part in (None, mask):
            _run(interpreter, mask=part, S=97, Skv=109, D=24, point={"loads": loads})


def test_grouped_heads_in_bfloat16(interpreter):
    g = Builder()
    _run(interpreter, mask=g.q >= g.kv, H=4, Hkv=2, S=96, D=64, dtype="bfloat16")


def test_float16_with_a_batch_dependent_mask(interpreter):
    g = Builder()
    length = g.read("length", (2,), "int64", g.b)
    mask = g.kv < length
    buffers = {"length": np.array([96, 33])}
    for tiles in ("closed", "ranges", "lists"):
        _run(
            interpreter, mask=mask, buffers=buffers, B=2, S=96, D=32, dtype="float16",
            point={"tiles": tiles},
        )  # fmt: skip


def test_window_per_head_from_a_buffer(interpreter):
    g = Builder()
    window = g.read("window", (2,), "int32", g.h)
    mask = (g.q >= g.kv) & (g.q - g.kv <= window)
    _run(interpreter, mask=mask, buffers={"window": np.array([8, 100], np.int32)})


def test_row_that_sees_nothing_gives_zero(interpreter):
    g = Builder()
    for mask in (g.kv < g.q - 40, (g.q >= 200) & (g.kv >= 0)):
        _run(interpreter, mask=mask)


def test_minus_infinity_in_the_score_becomes_a_mask(interpreter):
    g = Builder()
    score = g.apply("where", g.q >= g.kv, g.score * 2.0, float("-inf"))
    source = _run(interpreter, score)
    assert "full_last" in source


def test_captured_bias_with_minus_infinity(interpreter):
    g = Builder()
    score = g.score + g.read("pad", (1, 128), "float32", g.b, g.kv)
    pad = np.where(np.arange(128) < 50, -np.inf, 0.5).astype(np.float32)[None]
    _run(interpreter, score, buffers={"pad": pad})


def test_table_bias_indexed_by_distance(interpreter):
    g = Builder()
    score = g.score + g.read("table", (2, 191), "float32", g.h, g.q - g.kv + 95)
    table = np.random.default_rng(1).standard_normal((2, 191)).astype(np.float32)
    _run(interpreter, score, buffers={"table": table}, S=96)


def test_sigmoid_keeps_row_terms(interpreter):
    g = Builder()
    score = g.score - (g.q - g.kv) * 0.02 - 3.0
    _run(interpreter, score, g.q >= g.kv, normalize="sigmoid", S=96)


def test_integer_arithmetic_rounds_as_python(interpreter):
    g = Builder()
    bucket = g.apply("minimum", (g.q - g.kv) // 7, 5)
    score = g.score + bucket * 0.1 + ((g.kv - g.q) % 5) * 0.05
    _run(interpreter, score, (g.q - g.kv) % 3 <= 1, S=96)


def test_bounded_scores_need_no_running_maximum(interpreter):
    score, _ = variants.softcap()
    for choice in ("online", "none"):
        for tanh in ("exact", "exp2"):
            _run(interpreter, score, point={"running_max": choice, "tanh": tanh}, S=96)
    _run(interpreter, score, dtype="bfloat16", point={"running_max": "none", "tanh": "approx"})
