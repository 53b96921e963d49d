"""Generated decode kernels over a paged cache, run in Triton's interpreter against float64."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attention_check import TOLERANCE, attend, draw, exact, relative_error, scores
from graph_expressions import Builder, make_spec

from hotloop.core.graph import AttentionSpec
from hotloop.errors import UnsupportedOp
from hotloop.templates.attention.family import AttentionFamily
from hotloop.templates.decode.family import DecodeFamily
from hotloop.templates.decode.schedule import is_decode
from hotloop.templates.hopper.family import HopperFamily

SIZES = {"B": 2, "H": 8, "Hkv": 2, "S": 1, "Skv": 256, "D": 32}
SPARE = 3


def paged(page_size: int, score=None, mask=None, **sizes: Any) -> AttentionSpec:
    spec = make_spec(score=score, mask=mask, **{**SIZES, **sizes})
    pages = spec.B * spec.Skv // page_size + SPARE
    return replace(spec, page_size=page_size, pages=pages)


def put_into_pages(spec: AttentionSpec, keys: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return (pages, Hkv, page_size, D) with NaN in the pages that nobody uses."""
    assert spec.page_size is not None
    cache = np.full((spec.pages, spec.Hkv, spec.page_size, spec.D), np.nan, np.float32)
    for b in range(spec.B):
        for i, page in enumerate(table[b]):
            cache[page] = keys[b, :, i * spec.page_size : (i + 1) * spec.page_size]
    return cache


def _run(interpreter, spec, *, score=None, mask=None, buffers=None, point=None, table=None):
    family = DecodeFamily(spec)
    source = family.render(family.space().complete(point or {})).text()
    q, k, v = draw(spec, seed=3)
    columns = spec.Skv // spec.page_size
    rng = np.random.default_rng(7)
    own = rng.permutation(spec.pages)[: spec.B * columns].reshape(spec.B, columns).astype(np.int32)
    caches = [put_into_pages(spec, t, own) for t in (k, v)]
    dtypes = {b.name: b.dtype for b in spec.buffers}
    state = {name: (value, dtypes[name]) for name, value in (buffers or {}).items()}
    state["page_table"] = (own if table is None else table, "int32")
    (got,) = interpreter.run(source, [(t, spec.dtype) for t in (q, *caches)], state=state)
    want = exact(spec, [q, k, v], buffers or {}, score=score, mask=mask)
    error = relative_error(got, want)
    assert error < TOLERANCE[spec.dtype], f"error {error:.2e}\n{source}"
    return source


@pytest.mark.parametrize("block", [32, 64, 128])
@pytest.mark.parametrize("page_size", [16, 64])
def test_pages_smaller_and_larger_than_a_step(interpreter, page_size, block):
    source = _run(interpreter, paged(page_size, dtype="float16"), point={"BLOCK_N": block})
    is_scalar = block <= page_size
    assert ("page = page_of(page_table_ptr, start_n + BLOCK_N)" in source) is is_scalar


@pytest.mark.parametrize("S", [1, 4])
@pytest.mark.parametrize("page_size", [16, 64])
def test_a_length_of_each_batch(interpreter, page_size, S):
    g = Builder()
    mask = g.kv < g.read("lengths", (2,), "int32", g.b)
    spec = paged(page_size, mask=mask, S=S)
    lengths = {"lengths": np.array([77, 241], dtype=np.int32)}
    source = _run(interpreter, spec, mask=mask, buffers=lengths)
    assert "last = tl.cdiv(KV_LEN, BLOCK_N)" not in source  # what is past the end is not read


def test_a_batch_without_keys_gives_zero(interpreter):
    g = Builder()
    mask = g.kv < g.read("lengths", (2,), "int32", g.b)
    lengths = {"lengths": np.array([0, 1], dtype=np.int32)}
    _run(interpreter, paged(64, mask=mask), mask=mask, buffers=lengths, point={"SPLITS": 4})


def test_causal_queries_at_the_end_of_the_keys_with_a_bias(interpreter):
    g = Builder()
    slopes = g.read("slopes", (8,), "float32", g.h)
    score = g.score + slopes * (g.kv - g.q)
    m = Builder()
    mask = m.q + 252 >= m.kv
    values = {"slopes": (2.0 ** -np.arange(1, 9)).astype(np.float32)}
    _run(interpreter, paged(16, score, mask, S=4), score=score, mask=mask, buffers=values)


@pytest.mark.parametrize(
    ("dtype", "page_size"), [("bfloat16", 16), ("bfloat16", 64), ("float16", 64)]
)
def test_each_16_bit_dtype(interpreter, dtype, page_size):
    _run(interpreter, paged(page_size, dtype=dtype, D=64))


def test_keys_that_are_no_multiple_of_a_step_and_heads_that_are_no_power_of_two(interpreter):
    spec = paged(16, Skv=16 * 11, D=24, H=6, Hkv=2)
    _run(interpreter, spec, point={"BLOCK_N": 64})


def test_weights_that_are_not_normalised(interpreter):
    _run(interpreter, paged(64, normalize="sigmoid"))


@pytest.mark.parametrize("stem", ["decode", "decode_paged"])
def test_the_example_is_generated_right(interpreter, stem):
    path = Path(__file__).parents[2] / f"examples/attention/{stem}.py"
    sizes = {"B": 2, "H": 8, "Hkv": 2, "Skv": 256, "D": 32}
    plain = make_spec(**sizes, S=1, dtype="bfloat16")
    tensors = draw(plain, seed=3)
    traced = interpreter.trace(path.read_text(), scores(plain, tensors), sizes)
    spec = traced["spec"]
    state = {"lengths": (traced["buffers"]["lengths"], "int32")}
    if spec.page_size is not None:
        table = np.array([[5, 2, 9, 0], [1, 10, 3, 8]], dtype=np.int32)
        state["page_table"] = (table, "int32")
    family = DecodeFamily(spec)
    source = family.render(family.space().starts[0]).text()
    inputs = tensors
    if spec.page_size is not None:
        inputs = [tensors[0], *(put_into_pages(spec, t, table) for t in tensors[1:])]
    (got,) = interpreter.run(source, [(t, "bfloat16") for t in inputs], state=state)
    want = attend(spec, tensors, traced["score"], traced["keep"])
    assert relative_error(got, want) < TOLERANCE["bfloat16"]


def test_a_table_that_is_ignored_is_wrong(interpreter):
    natural = np.arange(8, dtype=np.int32).reshape(2, 4)
    with pytest.raises(AssertionError, match="error"):
        _run(interpreter, paged(64), table=natural)


def test_a_table_of_a_wrong_size_is_refused_in_one_line(interpreter):
    short = np.zeros((2, 3), dtype=np.int32)
    expected = r"ValueError: expected page_table \(2, 4\); got torch.Size\(\[2, 3\]\)\n"
    with pytest.raises(AssertionError, match=expected):
        _run(interpreter, paged(64), table=short)


def test_other_families_refuse_pages_and_say_who_reads_them():
    spec = paged(64)
    assert is_decode(spec)
    for family in (AttentionFamily, HopperFamily):
        with pytest.raises(UnsupportedOp, match="page_size 64: .* reads contiguous k and v only"):
            family(spec)
        family(replace(spec, page_size=None, pages=None))


def test_more_queries_than_a_decode_step_are_refused():
    DecodeFamily(paged(64, S=16))
    with pytest.raises(UnsupportedOp, match=r"H / Hkv \* S = 68 query rows .* at most 64"):
        DecodeFamily(paged(64, S=17))
    DecodeFamily(make_spec(**{**SIZES, "S": 17}))  # contiguous: another family is better, no error


def test_linter_finds_nothing_in_the_sources(tmp_path):
    pytest.importorskip("ruff")
    m = Builder()
    mask = m.kv < m.read("lengths", (2,), "int32", m.b)
    specs = [paged(16), paged(64, mask=mask, D=24), paged(256, normalize="sigmoid")]
    for i, family in enumerate(DecodeFamily(spec) for spec in specs):
        for j, start in enumerate(family.space().starts):
            (tmp_path / f"kernel_{i}_{j}.py").write_text(family.render(start).text())
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "E,F,W,I"]
    done = subprocess.run(
        [*command, "--line-length", "100", "--no-cache", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_the_source_of_contiguous_keys_has_no_pages():
    family = DecodeFamily(make_spec(**{**SIZES, "Skv": 512}))
    assert "page" not in family.render(family.space().starts[0]).text()
