"""Generated row-wise kernels, run in Triton's interpreter against numpy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from graph_models import ModelBuilder

from hotloop.errors import UnsupportedOp
from hotloop.templates.rowwise.family import RowwiseFamily

EPS = 1e-5


def _draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _check(interpreter, graph, inputs, want, *, state=None, structures=None, tol=3e-6, **point):
    family = RowwiseFamily(graph)
    space = family.space()
    offered = next(d for d in space.dimensions if d.name == "structure").choices
    for structure in structures or offered:
        complete = space.complete({"structure": structure, **point})
        source = family.render(complete).text()
        args = [(x, "float32") for x in inputs]
        got = interpreter.run(
            source, args, state={k: (v, "float32") for k, v in (state or {}).items()}
        )
        for mine, right in zip(got, want, strict=True):
            assert mine.shape == right.shape
            error = np.abs(mine - right).max() / max(1.0, np.abs(right).max())
            assert error < tol, f"error {error:.1e}, {structure}\n{source}"
    return source


def test_pointwise_chain_with_broadcast_parameters(interpreter):
    g = ModelBuilder()
    x = g.input(0, 3, 5, 7)
    bias = g.parameter("norm.bias", 5, 1)
    total = g.apply("add", x, bias)
    out = g.apply("mul", g.apply("sigmoid", total), 2.0)
    a, b = _draw(3, 5, 7), _draw(5, 1, seed=1)
    want = 2 / (1 + np.exp(-(a.astype(np.float64) + b)))
    _check(interpreter, g.graph(out), [a], [want], state={"norm.bias": b})


@pytest.mark.parametrize("op", ["gelu_erf", "elu", "hardswish", "mish", "softplus", "leaky_relu"])
def test_activations_follow_their_definitions(interpreter, op):
    torch = pytest.importorskip("torch")
    g = ModelBuilder()
    out = g.apply(op, g.input(0, 1000))
    a = 4 * _draw(1000)
    function = {"gelu_erf": "gelu"}.get(op, op)
    want = getattr(torch.nn.functional, function)(torch.from_numpy(a).double()).numpy()
    _check(interpreter, g.graph(out), [a], [want])


def test_softmax_and_log_softmax_in_every_structure(interpreter):
    for op in ("softmax", "log_softmax"):
        g = ModelBuilder()
        out = g.apply(op, g.apply("mul", g.input(0, 3, 5000), 3.0), dim=1)
        a = _draw(3, 5000)
        e = 3 * a.astype(np.float64)
        lse = np.log(np.exp(e).sum(1, keepdims=True))
        want = e - lse if op == "log_softmax" else np.exp(e - lse)
        _check(interpreter, g.graph(out), [a], [want], BLOCK_C=1024)


def test_layer_norm_over_two_dimensions_with_weights(interpreter):
    g = ModelBuilder()
    x, w, b = g.input(0, 4, 60, 90), g.parameter("w", 60, 90), g.parameter("b", 60, 90)
    out = g.apply("layer_norm", x, w, b, normalized_shape=[60, 90], eps=EPS)
    a, weight, bias = _draw(4, 60, 90) + 3, _draw(60, 90, seed=1), _draw(60, 90, seed=2)
    d = a.astype(np.float64)
    mean, var = d.mean((1, 2), keepdims=True), d.var((1, 2), keepdims=True)
    want = (d - mean) / np.sqrt(var + EPS) * weight + bias
    state = {"w": weight, "b": bias}
    _check(interpreter, g.graph(out), [a], [want], state=state, BLOCK_C=1024, tol=1e-5)


def test_reduction_over_a_middle_dimension(interpreter):
    g = ModelBuilder()
    x = g.input(0, 3, 10, 33)
    mean = g.reduce("mean", g.apply("square", x), 1, keepdim=True)
    root = g.apply("rsqrt", g.apply("add", mean, EPS))
    out = g.apply("mul", x, root, shape=x.shape)
    a = _draw(3, 10, 33)
    d = a.astype(np.float64)
    want = d / np.sqrt((d * d).mean(1, keepdims=True) + EPS)
    _check(interpreter, g.graph(out), [a], [want], BLOCK_R=64)


def test_reductions_to_one_value_a_row(interpreter):
    d = _draw(6, 200).astype(np.float64)
    lse = np.log(np.exp(d).sum(1))
    for op, want in (
        ("sum", d.sum(1)),
        ("amax", d.max(1)),
        ("amin", d.min(1)),
        ("logsumexp", lse),
        ("argmax", d.argmax(1)),
        ("argmin", d.argmin(1)),
    ):
        g = ModelBuilder()
        dtype = "int64" if op.startswith("arg") else "float32"
        out = g.reduce(op, g.input(0, 6, 200), 1)
        g.nodes[-1] = out = type(out)(
            name=out.name, op=op, args=out.args, attrs=out.attrs, shape=out.shape, dtype=dtype
        )
        _check(interpreter, g.graph(out), [_draw(6, 200)], [want], BLOCK_C=1024)


def test_full_reduction_of_a_difference(interpreter):
    g = ModelBuilder()
    delta = g.apply("sub", g.input(0, 64, 128), g.input(1, 64, 128))
    out = g.reduce("mean", g.apply("square", delta), 0, 1)
    a, b = _draw(64, 128), _draw(64, 128, seed=1)
    want = np.asarray(((a.astype(np.float64) - b) ** 2).mean())
    _check(interpreter, g.graph(out), [a, b], [want], BLOCK_C=1024)


def test_statistics_that_build_on_each_other(interpreter):
    g = ModelBuilder()
    x = g.input(0, 5, 300)
    centered = g.apply("sub", x, g.reduce("mean", x, 1, keepdim=True))
    top = g.reduce("amax", g.apply("abs", centered), 1, keepdim=True)
    out = g.apply("div", centered, top)
    a = _draw(5, 300) + 7
    d = a.astype(np.float64) - a.mean(1, keepdims=True, dtype=np.float64)
    want = d / np.abs(d).max(1, keepdims=True)
    _check(interpreter, g.graph(out), [a], [want], BLOCK_C=1024, tol=2e-5)


def test_what_is_not_row_wise_is_refused_by_name():
    g = ModelBuilder()
    x = g.input(0, 4, 6)
    both = g.apply("add", g.reduce("sum", x, 0, keepdim=True), g.reduce("sum", x, 1, keepdim=True))
    with pytest.raises(UnsupportedOp, match="'sum'.*line 3"):
        RowwiseFamily(g.graph(both))
    g = ModelBuilder()
    x = g.input(0, 4, 4)
    out = g.apply("add", x, g.reduce("sum", x, 1), shape=(4, 4))
    with pytest.raises(UnsupportedOp, match="'add'"):
        RowwiseFamily(g.graph(out))
