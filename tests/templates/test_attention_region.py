"""Closed forms of masks against brute force: never a key too few, never a mask too little."""

from __future__ import annotations

import numpy as np
import pytest
from graph_expressions import Builder, make_spec, positions
from hypothesis import given, settings
from hypothesis import strategies as st

from hotloop.templates.analysis import ScalarGraph
from hotloop.templates.attention.region import RegionFinder
from hotloop.templates.attention.span import Region, evaluate

S = 48
SMALL = st.integers(-60, 60)


def _atom(g: Builder, kind: str, a: int, c: int):
    difference = g.q * a - g.kv
    return {
        "causal": lambda: g.q + c >= g.kv,
        "scaled": lambda: difference <= c,
        "window": lambda: g.apply("abs", g.q - g.kv) <= abs(c),
        "outside": lambda: g.apply("abs", g.q - g.kv) > abs(c),
        "prefix": lambda: g.kv < c,
        "suffix": lambda: g.kv >= c,
        "rows": lambda: g.q * a >= c,
        "equal": lambda: g.q.equals(g.kv + c),
        "different": lambda: g.kv.differs(g.q - c),
        "extreme": lambda: g.apply("maximum", g.kv, g.q - c) <= g.q,
        "clamped": lambda: g.apply("abs", _clamped(g, a, c) - g.kv) <= abs(a) + 3,
        "clamped_key": lambda: g.apply("maximum", g.kv, c % 40) - 2 <= g.apply("minimum", g.q, c),
        "half_known": lambda: g.apply("maximum", g.kv, g.q % 7) <= g.q + c,
        "periodic": lambda: (g.q - g.kv) % 3 <= 1,
        "constant": lambda: g.apply("le", c, 0 * g.q),
    }[kind]()


def _clamped(g: Builder, radius: int, roof: int):
    """The centre of a window that is clamped at both ends of the sequence."""
    return g.apply("minimum", g.apply("maximum", g.q, abs(radius)), abs(roof))


KINDS = (
    "causal",
    "scaled",
    "window",
    "outside",
    "prefix",
    "suffix",
    "rows",
    "equal",
    "different",
    "extreme",
    "clamped",
    "clamped_key",
    "half_known",
    "periodic",
    "constant",
)


@st.composite
def masks(draw):
    """A mask made of affine comparisons and one kind that has no closed form."""
    g = Builder()
    parts = [
        _atom(g, draw(st.sampled_from(KINDS)), draw(st.integers(-2, 2)), draw(SMALL))
        for _ in range(draw(st.integers(1, 3)))
    ]
    mask = parts[0]
    for part in parts[1:]:
        mask = mask & part if draw(st.booleans()) else mask | part
        if draw(st.booleans()):
            mask = ~mask
    return mask


def _span_mask(span, rows: range) -> np.ndarray:
    ends = {"q_first": rows[0], "q_last": rows[-1], "scalars": {}}
    low = 0 if span.low is None else evaluate(span.low, **ends)
    high = S if span.high is None else evaluate(span.high, **ends)
    keys = np.arange(S)
    return (keys >= low) & (keys < high)


def _region(mask) -> tuple[Region, np.ndarray]:
    spec = make_spec(mask=mask, S=S)
    region = RegionFinder(ScalarGraph(spec.mask_mod, spec)).find()
    keep = np.broadcast_to(mask.compute(positions(spec)), (1, 1, S, S))[0, 0]
    return region, keep


@settings(max_examples=300, deadline=None)
@given(masks(), st.sampled_from([1, 5, 16, 48]))
def test_spans_are_safe_for_every_tile(mask, block):
    region, keep = _region(mask)
    for start in range(0, S, block):
        rows = range(start, min(start + block, S))
        tile = keep[rows[0] : rows[-1] + 1]
        some = _span_mask(region.some, rows)
        assert not (tile.any(0) & ~some).any(), "a key that a row may see is skipped"
        if region.every is not None:
            every = _span_mask(region.every, rows)
            assert not (~tile.all(0) & every).any(), "a masked key counts as seen by all"


@pytest.mark.parametrize(
    ("build", "some", "every"),
    [
        (lambda g: g.q >= g.kv, (0, 32), (0, 17)),
        (lambda g: (g.q >= g.kv) & (g.q - g.kv < 8), (9, 32), (24, 17)),
        (lambda g: (g.kv < 5) | (g.q >= g.kv), (0, 32), (0, 17)),
        (lambda g: g.apply("abs", g.q - g.kv) <= 20, (0, 48), (11, 37)),
        (lambda g: g.apply("abs", _clamped(g, 20, 27) - g.kv) <= 20, (0, 48), (7, 41)),
        (lambda g: g.apply("abs", _clamped(g, 4, 43) - g.kv) <= 4, (12, 36), None),
        (lambda g: (g.kv < 5) | (g.kv >= 40) | (g.q >= g.kv), (0, 48), (0, 17)),
    ],
    ids=["causal", "window", "prefix", "symmetric", "wide_centred", "centred", "two_ends"],
)
def test_common_masks_have_tight_spans(build, some, every):
    """Rows 16 to 31: as good as the mask allows, not only safe."""
    g = Builder()
    region, _ = _region(build(g))
    rows = range(16, 32)
    for span, ends in ((region.some, some), (region.every, every)):
        keys = np.arange(S)
        low, high = ends or (0, 0)
        assert np.array_equal(_span_mask(span, rows), (keys >= low) & (keys < high))


@pytest.mark.parametrize("is_exact", [True, False])
def test_what_is_lost_is_said(is_exact):
    g = Builder()
    window = g.apply("abs", _clamped(g, 4, 43) - g.kv) <= 4
    region, _ = _region(window if is_exact else window | (g.kv < 5))
    assert region.is_exact == is_exact


def test_a_gather_is_not_guessed_at():
    g = Builder()
    mask = g.read("doc", (S,), "int32", g.q).equals(g.read("doc", (S,), "int32", g.kv))
    spec = make_spec(mask=mask & (g.q >= g.kv), S=S)
    region = RegionFinder(ScalarGraph(spec.mask_mod, spec)).find()
    assert not region.is_exact
    assert region.every is None
    assert region.some.high is not None
