"""Any two variants together: random scores, masks and schedules against float64."""

from __future__ import annotations

import attention_variants as variants
import numpy as np
import pytest
from attention_check import check
from graph_expressions import Builder, Expression, make_spec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hotloop.core.space import Point
from hotloop.templates.attention.family import AttentionFamily

S, H, B, WIDTH = 64, 2, 2, 8
"""Small, and an image of 8 x 8."""

BUFFERS = {
    "doc": np.repeat(np.array([0, 1, 4, 5], np.int32), [9, 30, 5, 20]),  # 2 and 3 are empty
    "length": np.array([S, 21], np.int32),
    "bias": np.random.default_rng(7).standard_normal((H, 8)).astype(np.float32),
}
SHAPES = {"doc": (S,), "length": (B,), "bias": (H, 8)}


def _document(g: Builder) -> Expression:
    return g.read("doc", (S,), "int32", g.q).equals(g.read("doc", (S,), "int32", g.kv))


def _near(g: Builder, query: Expression, key: Expression, length: int) -> Expression:
    centre = g.apply("minimum", g.apply("maximum", query, 2), length - 3)
    return g.apply("abs", centre - key) <= 2


MASKS = {
    "causal": lambda g: g.q >= g.kv,
    "window": lambda g: g.apply("abs", g.q - g.kv) <= 20,
    "document": _document,
    "prefix": lambda g: (g.kv < 11) | (g.q >= g.kv),
    "dilated": lambda g: (g.apply("abs", g.q - g.kv) <= 24) & ((g.q - g.kv) % 2).equals(0),
    "length": lambda g: g.kv < g.read("length", (B,), "int32", g.b),
    "neighbourhood": lambda g: _near(g, g.q, g.kv, S),
    "neighbourhood_2d": lambda g: (
        _near(g, g.q // WIDTH, g.kv // WIDTH, WIDTH) & _near(g, g.q % WIDTH, g.kv % WIDTH, WIDTH)
    ),
    "neighbourhood_dilated": lambda g: (
        _near(g, g.q // 2, g.kv // 2, S // 2) & (g.q % 2).equals(g.kv % 2)
    ),
    "blocks": lambda g: (g.q // 16).equals(g.kv // 16),
}


def _bucket(g: Builder) -> Expression:
    near = g.apply("minimum", g.apply("abs", g.kv - g.q), 3)
    return near + g.apply("where", g.kv > g.q, 4, 0 * g.q)


SCORES = {
    "alibi": lambda g, s: s + 2.0 ** (-8 * (g.h + 1) / H) * (g.kv - g.q),
    "relative": lambda g, s: s + (g.q - g.kv) * 0.1,
    "softcap": lambda g, s: 20 * g.apply("tanh", s / 20),
    "head_bias": lambda g, s: s + 2 * g.h,
    "t5_bias": lambda g, s: s + g.read("bias", (H, 8), "float32", g.h, _bucket(g)),
    "scaled": lambda g, s: s * 0.5,
}


@st.composite
def compositions(draw):
    """Up to two score_mods, one after the other, and up to two mask_mods."""
    score = mask = None
    g = Builder()
    for name in draw(st.lists(st.sampled_from(sorted(SCORES)), max_size=2)):
        score = SCORES[name](g, g.score if score is None else score)
    m = Builder()
    for name in draw(st.lists(st.sampled_from(sorted(MASKS)), max_size=2, unique=True)):
        part = MASKS[name](m)
        if mask is None:
            mask = part
        else:
            mask = mask & part if draw(st.booleans()) else mask | part
    normalize = draw(st.sampled_from(["softmax", "softmax", "sigmoid"]))
    spec = make_spec(score=score, mask=mask, B=B, H=H, S=S, D=16, normalize=normalize)
    return spec, score, mask, draw(_points(spec))


@st.composite
def _points(draw, spec) -> Point:
    """Small tiles, and any of the structures that the schedule space has."""
    space = AttentionFamily(spec).space()
    point: Point = {"BLOCK_M": 32, "BLOCK_N": 32, "dot_precision": "ieee"}
    for dimension in space.dimensions:
        if dimension.name in ("tiles", "full_tiles", "row_order", "grid_order", "token_order"):
            point = {**point, dimension.name: draw(st.sampled_from(dimension.choices))}
    return space.complete(point)


def _check(interpreter, composition) -> None:
    spec, score, mask, point = composition
    buffers = {b.name: BUFFERS[b.name] for b in spec.buffers}
    assert all(b.shape == SHAPES[b.name] for b in spec.buffers)
    check(interpreter, spec, score=score, mask=mask, buffers=buffers, **point)


QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(max_examples=6, deadline=None, suppress_health_check=QUIET, derandomize=True)
@given(compositions())
def test_compositions_of_two(interpreter, composition):
    _check(interpreter, composition)


@pytest.mark.slow
@settings(max_examples=120, deadline=None, suppress_health_check=QUIET)
@given(compositions())
def test_many_compositions_of_two(interpreter, composition):
    _check(interpreter, composition)


@pytest.mark.parametrize("name", sorted(MASKS))
def test_mask_by_its_default_schedule(interpreter, name):
    mask = MASKS[name](Builder())
    spec = make_spec(mask=mask, B=B, H=1, S=S, D=16)
    buffers = {b.name: BUFFERS[b.name] for b in spec.buffers}
    check(interpreter, spec, mask=mask, buffers=buffers, BLOCK_M=32, BLOCK_N=32)


def test_a_wrong_mask_would_be_noticed(interpreter):
    """The comparison is with the definition: another mask's definition does not pass."""
    mask, other = variants.causal()[1], Builder()
    spec = make_spec(mask=mask, H=1, S=S, D=16)
    with pytest.raises(AssertionError, match="error"):
        check(interpreter, spec, mask=other.q > other.kv, BLOCK_M=32, BLOCK_N=32)
