"""Sizes and inputs at the edge: a correct kernel, or an error that says what to do."""

from __future__ import annotations

import attention_variants as variants
import numpy as np
import pytest
from attention_check import check
from graph_expressions import Builder, make_spec

from hotloop.errors import UnsupportedOp
from hotloop.templates.attention.family import AttentionFamily
from hotloop.templates.attention.plan import AttentionPlan
from hotloop.templates.attention.schedule import SHARED_BYTES, shared_bytes

SIZES = "import torch\nB, H, S, D = 1, 2, 32, 16\n"
DOC = (np.arange(200) // 40).astype(np.int32)


def _document(g: Builder):
    return g.read("doc", (200,), "int32", g.q).equals(g.read("doc", (200,), "int32", g.kv))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize(("S", "Skv"), [(1, 1), (1, 129), (129, 1)])
def test_one_query_or_one_key(interpreter, S, Skv, dtype):
    check(interpreter, make_spec(S=S, Skv=Skv, H=1, D=16, dtype=dtype))
    g = Builder()
    mask = _document(g) & (g.q >= g.kv)
    spec = make_spec(mask=mask, S=S, Skv=Skv, H=1, D=16, dtype=dtype)
    check(interpreter, spec, mask=mask, buffers={"doc": DOC})


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("D", [1, 7, 20, 300, 576])
def test_head_sizes_that_are_no_power_of_two(interpreter, D, dtype):
    mask = variants.causal()[1]
    check(interpreter, make_spec(mask=mask, S=40, H=1, D=D, dtype=dtype), mask=mask)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("D", [64, 128, 192, 256, 300, 512, 576, 1024])
def test_every_head_size_has_a_start_that_shared_memory_holds(D, dtype):
    plan = AttentionPlan.of(make_spec(mask=variants.causal()[1], S=4096, D=D, dtype=dtype))
    starts = AttentionFamily(plan.spec).space().starts
    assert starts
    assert all(shared_bytes(plan, start) <= SHARED_BYTES for start in starts)


def test_head_sizes_that_fit_nowhere_are_refused():
    with pytest.raises(UnsupportedOp, match="D=2048 in float32.*384 KiB.*make D smaller"):
        AttentionFamily(make_spec(D=2048)).space()


@pytest.mark.parametrize("precision", ["ieee", "tf32x3"])
def test_float32_inputs(interpreter, precision):
    score, mask = variants.alibi(H=1)[0], variants.causal()[1]
    spec = make_spec(score=score, mask=mask, S=80, H=1, D=16)
    check(interpreter, spec, score=score, mask=mask, dot_precision=precision)


@pytest.mark.parametrize("tiles", ["closed", "ranges", "lists"])
def test_documents_without_tokens(interpreter, tiles):
    """Numbers 1, 2 and 4 are of no token; document 5 is one token long, 6 has no query."""
    g = Builder()
    doc = g.read("doc", (96,), "int32", g.q).equals(g.read("doc", (96,), "int32", g.kv))
    documents = np.repeat(np.array([0, 3, 5, 6], np.int32), [33, 30, 1, 32])
    spec = make_spec(mask=doc, S=64, Skv=96, H=1, D=16)
    check(interpreter, spec, mask=doc, buffers={"doc": documents}, BLOCK_N=32, tiles=tiles)


@pytest.mark.parametrize("normalize", ["softmax", "sigmoid"])
@pytest.mark.parametrize("tiles", ["closed", "ranges", "lists"])
def test_rows_that_see_nothing_give_zero(interpreter, tiles, normalize):
    """Every third row, all rows of the first tile, and a whole batch."""
    g = Builder()
    length = g.read("length", (2,), "int32", g.b)
    mask = (g.q % 3 >= 1) & (g.kv + 40 <= g.q) & (g.kv < length)
    spec = make_spec(mask=mask, B=2, H=1, S=96, D=16, normalize=normalize)
    buffers = {"length": np.array([50, 0], np.int32)}
    check(interpreter, spec, mask=mask, buffers=buffers, BLOCK_M=32, BLOCK_N=32, tiles=tiles)


def test_rows_that_see_nothing_in_boxes(interpreter):
    mask = variants.neighbourhood_2d(width=16, height=8, radius=1)
    g = mask.builder
    mask = mask & (g.q % 16 >= 9)
    spec = make_spec(mask=mask, S=128, H=1, D=16)
    point = {"BLOCK_M": 64, "BLOCK_N": 32, "tiles": "lists", "token_order": "boxes"}
    check(interpreter, spec, mask=mask, **point)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "def mask_mod(b, h, q, k):\n    return q >= k and k > 3",
            "mask_mod line 4: Python control",
        ),
        (
            "def mask_mod(b, h, q, k):\n    return True if q > k else q == k",
            "line 4: Python control",
        ),
        (
            "def score_mod(s, b, h, q, k):\n    return s * max(q, k)",
            "score_mod line 4: Python contr",
        ),
        (
            "def score_mod(s, b, h, q, k):\n    while q > 1:\n        q = q // 2\n    return s + q",
            "score_mod line 4: Python control flow on a tensor",
        ),
        ("def score_mod(s, b, h, q, k):\n    return torch.sort(s)[0]", "line 4: aten.sort"),
    ],
    ids=["and", "if", "max", "while", "sort"],
)
def test_control_flow_on_positions_is_named_with_its_line(interpreter, body, message):
    with pytest.raises(AssertionError, match=f"UnsupportedOp.*{message}"):
        interpreter.trace(SIZES + body + "\n", np.zeros((1, 2, 32, 32), np.float32), {})


def test_control_flow_on_constants_is_traced(interpreter):
    body = "WIDE = S > 16\ndef mask_mod(b, h, q, k):\n    return q >= k if WIDE else q > k\n"
    traced = interpreter.trace(SIZES + body, np.zeros((1, 2, 32, 32), np.float32), {})
    assert traced["spec"].mask_mod is not None
