"""Generated matrix-product kernels, run in Triton's interpreter against numpy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from graph_models import ModelBuilder

from hotloop.errors import UnsupportedOp
from hotloop.templates.matmul.family import MatmulFamily

TILE = {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 16}


def _draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _check(interpreter, graph, inputs, want, *, state=None, dtype="float32", tol=2e-6, **point):
    family = MatmulFamily(graph)
    source = ""
    for loads in next(d for d in family.space().dimensions if d.name == "loads").choices:
        complete = family.space().complete({"loads": loads, **point})
        source = family.render(complete).text()
        args = [(x, dtype) for x in inputs]
        parameters = {k: (v, dtype) for k, v in (state or {}).items()}
        (got,) = interpreter.run(source, args, state=parameters)
        assert got.shape == want.shape
        error = np.abs(got - want).max() / np.abs(want).max()
        assert error < tol, f"error {error:.1e} at {complete}\n{source}"
    return source


def test_linear_with_an_activation(interpreter):
    g = ModelBuilder()
    x, w, b = g.input(0, 50, 40), g.parameter("fc.weight", 36, 40), g.parameter("fc.bias", 36)
    y = g.apply("linear", x, w, b, shape=(50, 36))
    out = g.apply("mul", g.apply("relu", g.apply("sub", y, 0.25)), 1.5)
    a, weight, bias = _draw(50, 40), _draw(36, 40, seed=1), _draw(36, seed=2)
    y64 = a.astype(np.float64) @ weight.T.astype(np.float64) + bias
    want = 1.5 * np.maximum(y64 - 0.25, 0)
    state = {"fc.weight": weight, "fc.bias": bias}
    for precision in ("tf32x3", "ieee"):
        _check(interpreter, g.graph(out), [a], want, state=state, dot_precision=precision, **TILE)


def test_transposed_operands(interpreter):
    g = ModelBuilder()
    x = g.apply("transpose", g.input(0, 24, 64), shape=(64, 24), dim0=0, dim1=1)
    out = g.apply("matmul", x, g.input(1, 24, 32), shape=(64, 32))
    a, b = _draw(24, 64), _draw(24, 32, seed=1)
    _check(interpreter, g.graph(out), [a, b], a.T.astype(np.float64) @ b, **TILE)


def test_batched_product_with_a_residual(interpreter):
    g = ModelBuilder()
    x, y, r = g.input(0, 3, 32, 16), g.input(1, 3, 16, 48), g.input(2, 32, 48)
    out = g.apply("add", g.apply("matmul", x, y, shape=(3, 32, 48)), r)
    a, b, c = _draw(3, 32, 16), _draw(3, 16, 48, seed=1), _draw(32, 48, seed=2)
    want = a.astype(np.float64) @ b + c
    _check(interpreter, g.graph(out), [a, b, c], want, **TILE)


def test_leading_dimensions_become_rows_in_bfloat16(interpreter):
    g = ModelBuilder()
    x = g.input(0, 2, 3, 16, 32, dtype="bfloat16")
    w = g.input(1, 32, 64, dtype="bfloat16")
    out = g.apply("matmul", x, w, shape=(2, 3, 16, 64))
    a, b = (np.round(4 * _draw(*s)) / 4 for s in ((2, 3, 16, 32), (32, 64)))
    want = a.astype(np.float64) @ b
    tile = {"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 32}
    _check(interpreter, g.graph(out), [a, b], want, dtype="bfloat16", tol=4e-3, **tile)


def test_long_inner_dimension_is_split(interpreter):
    g = ModelBuilder()
    x, w, b = g.input(0, 20, 4100), g.parameter("w", 24, 4100), g.parameter("b", 24)
    out = g.apply("silu", g.apply("linear", x, w, b, shape=(20, 24)))
    a, weight, bias = _draw(20, 4100), _draw(24, 4100, seed=1), _draw(24, seed=2)
    y = a.astype(np.float64) @ weight.T.astype(np.float64) + bias
    want = y / (1 + np.exp(-y))
    source = _check(
        interpreter, g.graph(out), [a], want, state={"w": weight, "b": bias},
        BLOCK_M=32, BLOCK_N=32, BLOCK_K=64, SPLIT_K=8, tol=1e-5,
    )  # fmt: skip
    assert "SPLIT_K" in source


def test_what_is_no_product_with_epilogue_is_refused_by_name():
    g = ModelBuilder()
    y = g.apply("matmul", g.input(0, 8, 8), g.input(1, 8, 8))
    with pytest.raises(UnsupportedOp, match="'softmax'.*line 3"):
        MatmulFamily(g.graph(g.apply("softmax", y, dim=1)))
    g = ModelBuilder()
    x = g.apply("relu", g.input(0, 8, 8))
    with pytest.raises(UnsupportedOp, match="'matmul'"):
        MatmulFamily(g.graph(g.apply("matmul", x, g.input(1, 8, 8))))
