"""Generated decode kernels, run in Triton's interpreter against float64."""

from __future__ import annotations

import numpy as np
import pytest
from attention_check import TOLERANCE, draw, exact, relative_error
from graph_expressions import Builder, make_spec

from hotloop.templates.decode.family import DecodeFamily
from hotloop.templates.decode.schedule import is_decode, splits_of

SIZES = {"B": 2, "H": 8, "Hkv": 2, "S": 1, "Skv": 512, "D": 32}


def _run(interpreter, score=None, mask=None, *, buffers=None, point=None, **sizes):
    spec = make_spec(score=score, mask=mask, **{**SIZES, **sizes})
    assert is_decode(spec)
    family = DecodeFamily(spec)
    source = family.render(family.space().complete(point or {})).text()
    tensors = draw(spec, seed=3)
    dtypes = {b.name: b.dtype for b in spec.buffers}
    state = {name: (value, dtypes[name]) for name, value in (buffers or {}).items()}
    (got,) = interpreter.run(source, [(t, spec.dtype) for t in tensors], state=state)
    want = exact(spec, tensors, buffers or {}, score=score, mask=mask)
    error = relative_error(got, want)
    assert error < TOLERANCE[spec.dtype], f"error {error:.2e}\n{source}"
    return source


def test_one_query_of_grouped_heads(interpreter):
    source = _run(interpreter)
    assert "ROWS = tl.constexpr(16)" in source  # four heads of a group, rounded up
    assert "MASKED" not in source


@pytest.mark.parametrize("splits", [2, 4, 8])
def test_any_number_of_shares(interpreter, splits):
    _run(interpreter, point={"SPLITS": splits}, Skv=1024)


def test_several_queries_and_lengths_that_are_no_multiple_of_a_tile(interpreter):
    g = Builder()
    _run(interpreter, mask=g.q + 509 >= g.kv, S=5, Skv=523, D=24)


def test_a_bias_that_differs_between_the_heads_of_a_tile(interpreter):
    g = Builder()
    slopes = g.read("slopes", (8,), "float32", g.h)
    score = g.score + slopes * (g.kv - g.q)
    values = (2.0 ** -np.arange(1, 9)).astype(np.float32)
    _run(interpreter, score, buffers={"slopes": values})


def test_a_mask_that_differs_between_the_heads_of_a_tile(interpreter):
    g = Builder()
    reach = g.read("reach", (8,), "int32", g.h)
    values = np.array([1, 5, 64, 100, 200, 300, 511, 512], dtype=np.int32)
    source = _run(interpreter, mask=g.kv < reach, buffers={"reach": values})
    assert "last = tl.cdiv(KV_LEN, BLOCK_N)" in source  # bounds would differ between rows


def test_a_length_of_each_batch(interpreter):
    g = Builder()
    lengths = g.read("lengths", (2,), "int32", g.b)
    values = np.array([77, 512], dtype=np.int32)
    source = _run(interpreter, mask=g.kv < lengths, buffers={"lengths": values})
    assert "last = tl.cdiv(KV_LEN, BLOCK_N)" not in source  # what is past the end is not read


def test_keys_that_no_row_may_see_are_not_read(interpreter):
    g = Builder()
    source = _run(interpreter, mask=g.kv >= 448)
    assert "first = 448 // BLOCK_N" in source or "first = (448) // BLOCK_N" in source


def test_a_row_that_sees_no_key_gives_zero(interpreter):
    g = Builder()
    lengths = g.read("lengths", (2,), "int32", g.b)
    values = np.array([0, 300], dtype=np.int32)
    _run(interpreter, mask=g.kv < lengths, buffers={"lengths": values})


def test_weights_that_are_not_normalised(interpreter):
    source = _run(interpreter, normalize="sigmoid")
    assert "part_max" not in source


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_each_16_bit_dtype(interpreter, dtype):
    _run(interpreter, dtype=dtype, D=64)


def test_what_is_no_decode_step():
    assert is_decode(make_spec(**SIZES))
    assert not is_decode(make_spec(**{**SIZES, "S": 17}))  # 68 rows for each head of k and v
    assert not is_decode(make_spec(**{**SIZES, "Skv": 256}))


def test_shares_fill_the_device_and_are_no_smaller_than_a_tile():
    one = make_spec(**{**SIZES, "B": 1, "Hkv": 1, "H": 8, "Skv": 65536})
    assert splits_of(one)[0] == 128
    full = make_spec(**{**SIZES, "B": 66, "Hkv": 2, "H": 8, "Skv": 65536})
    assert splits_of(full)[0] == 2
    short = make_spec(**{**SIZES, "B": 1, "Hkv": 1, "H": 8, "Skv": 512})
    assert max(splits_of(short)) == 8
