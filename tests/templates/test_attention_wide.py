"""Captured tensors of 2^31 elements or more are read at 64-bit offsets, smaller ones as before."""

from __future__ import annotations

import re

import pytest
from graph_expressions import Builder, make_spec

from hotloop.templates.attention.family import AttentionFamily
from hotloop.templates.hopper.family import HopperFamily


def _loads(family, *, H, S, rows=None):
    """Return the statements that read the captured bias."""
    g = Builder()
    row = g.q if rows is None else g.q - rows
    score = g.score + g.read("bias", (H, S, S), "float32", g.h, row, g.kv)
    spec = make_spec(score=score, H=H, S=S, D=64, dtype="bfloat16")
    made = family(spec)
    text = made.render(made.space().starts[0]).text()
    return [line.strip() for line in text.splitlines() if "load(bias_ptr" in line]


@pytest.mark.parametrize("family", [AttentionFamily, HopperFamily])
def test_offsets_are_as_wide_as_the_tensor_needs(family):
    (wide,) = _loads(family, H=16, S=16384)  # 2^32 elements
    assert wide.count(".int64)") == 3
    for index in ("head", "q_idx", "kv_idx"):
        assert re.search(rf"\b{index}\.to\(\w+\.int64\)", wide)
    (narrow,) = _loads(family, H=4, S=16384)  # 2^30 elements
    assert "int64" not in narrow


def test_the_limit_is_2_to_the_31st():
    (at,) = _loads(AttentionFamily, H=8, S=16384)
    (below,) = _loads(AttentionFamily, H=7, S=16384)
    assert "int64" in at
    assert "int64" not in below


def test_a_sum_or_a_wrapped_index_is_widened_whole():
    (load,) = _loads(AttentionFamily, H=16, S=16384, rows=1)
    wrapped = "tl.where(index_in < 0, index_in + 16384, index_in)"
    assert f"{wrapped}.to(tl.int64) * 16384" in load
    (load,) = _loads(AttentionFamily, H=16, S=16384, rows=-1)
    assert "(q_idx - -1).to(tl.int64) * 16384" in load
