"""What the analysis of a score_mod drops, hoists and bounds."""

from __future__ import annotations

import math
from dataclasses import replace

import attention_variants as variants
import numpy as np
import pytest
from attention_check import check
from graph_expressions import Builder, make_spec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hotloop.errors import UnsupportedOp
from hotloop.templates.attention.family import AttentionFamily
from hotloop.templates.attention.plan import AttentionPlan


def _plan(score, **sizes) -> AttentionPlan:
    return AttentionPlan.of(make_spec(score=score, **sizes))


def test_terms_without_the_key_are_dropped_for_softmax_only():
    g = Builder()
    score = g.score + (g.q - g.kv) * 0.5 + g.h * 3
    terms = _plan(score).terms
    assert len(terms.dropped) == 2
    assert len(terms.affine) == 1
    assert terms.affine[0].factor == -0.5
    assert not terms.element
    kept = _plan(score, normalize="sigmoid").terms
    assert not kept.dropped
    assert kept.element
    assert kept.row


def test_alibi_costs_one_addition_a_score():
    score, _ = variants.alibi(S=4096, H=16)
    plan = _plan(score, H=16, S=4096)
    source = AttentionFamily(plan.spec).render(AttentionFamily(plan.spec).space().starts[0]).text()
    assert "bias = distance * slope" in source
    assert "q_idx" not in source.split("def attend")[1].split("return")[0]


def test_products_of_query_and_key_stay_together():
    g = Builder()
    distance = g.q - g.kv
    terms = _plan(g.score - distance * distance * 0.01).terms
    assert not terms.dropped
    assert len(terms.element) == 1


def test_bounds_follow_from_the_expression():
    softcap, _ = variants.softcap()
    assert _plan(softcap).score_bound_log2 == pytest.approx(20 * math.log2(math.e))
    assert _plan(softcap, dtype="bfloat16").can_skip_running_max
    assert not _plan(softcap, dtype="float16").can_skip_running_max
    g = Builder()
    assert not _plan(g.score * 2.0).can_skip_running_max
    g = Builder()
    assert not _plan(100 * g.apply("tanh", g.score)).can_skip_running_max


def test_an_operation_outside_the_vocabulary_is_named_with_its_line():
    g = Builder()
    spec = make_spec(score=g.apply("sin", g.score))
    assert spec.score_mod is not None
    nodes = tuple(replace(n, op=n.op.replace("sin", "cumsum")) for n in spec.score_mod.nodes)
    bad = replace(spec, score_mod=replace(spec.score_mod, nodes=nodes))
    with pytest.raises(UnsupportedOp, match="'cumsum'.*line 7"):
        AttentionPlan.of(bad)


# --- random modifications ---


def _index_part(draw, g: Builder):
    """A finite expression in the indices, some of it integer arithmetic."""
    leaf = draw(st.sampled_from(["q", "kv", "h", "difference", "distance", "table"]))
    part = {
        "q": g.q,
        "kv": g.kv,
        "h": g.h,
        "difference": g.q - g.kv,
        "distance": g.apply("abs", g.kv - g.q),
        "table": g.read("table", (96,), "float32", draw(st.sampled_from([g.q, g.kv]))),
    }[leaf]
    shape = draw(st.sampled_from(["linear", "floor", "mod", "bounded", "chosen", "capped"]))
    weight = draw(st.sampled_from([0.125, -0.5, 2.0]))
    if part.dtype == "int32":
        part = {"floor": part // 5, "mod": part % 7}.get(shape, part)
    if shape == "bounded":
        return g.apply("sin", part * 0.1) * weight
    if shape == "chosen":
        return g.apply("where", g.q >= g.kv, part * weight, 0.25)
    if shape == "capped":
        return g.apply("minimum", part * weight, 3.0)
    return part * weight


@st.composite
def modifications(draw):
    """A score_mod that nobody wrote a template for."""
    g = Builder()
    score = g.score
    if draw(st.booleans()):
        score = draw(st.sampled_from([8.0, 15.0])) * g.apply("tanh", score / 8.0)
    for _ in range(draw(st.integers(1, 3))):
        part = _index_part(draw, g)
        score = score + part if draw(st.booleans()) else score - part
    if draw(st.booleans()):
        score = score * draw(st.sampled_from([0.5, 1.5]))
    mask = None
    if draw(st.booleans()):
        m = Builder()
        mask = draw(
            st.sampled_from([m.q >= m.kv, (m.q - m.kv) % 4 <= 2, m.kv < 30 + 20 * m.h, m.kv >= m.q])
        )
    return score, mask


def _check_random(interpreter, modification, **point):
    score, mask = modification
    table = np.random.default_rng(2).standard_normal(96).astype(np.float32)
    buffers = {"table": table} if "table" in score.builder.buffers else {}
    spec = make_spec(score=score, mask=mask, S=96, D=16)
    check(interpreter, spec, score=score, mask=mask, buffers=buffers, **point)


QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(max_examples=8, deadline=None, suppress_health_check=QUIET, derandomize=True)
@given(modifications())
def test_modifications_nobody_foresaw(interpreter, modification):
    _check_random(interpreter, modification, BLOCK_M=64, BLOCK_N=32)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=QUIET)
@given(modifications(), st.sampled_from(["tma", "pointer"]), st.sampled_from([32, 64]))
def test_many_modifications_nobody_foresaw(interpreter, modification, loads, rows):
    _check_random(interpreter, modification, BLOCK_M=rows, BLOCK_N=32, loads=loads)
