"""Examples and random compositions of modifications as Hopper kernels, on emulated hardware."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from attention_check import TOLERANCE, attend, draw, relative_error, scores
from gluon_emulator import Settings
from graph_expressions import Builder, make_spec
from hopper_check import check_hopper, run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_attention_composition import BUFFERS, MASKS, SCORES, B, H, S

from hotloop.search.points import enumerate_points
from hotloop.templates.hopper.family import HopperFamily

FILES = sorted((Path(__file__).parents[2] / "examples/attention").glob("*.py"))
EXAMPLES = [path for path in FILES if not path.stem.startswith("decode")]
"""All but the decode steps, which have a family and tests of their own."""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_right_on_emulated_hardware(interpreter, path):
    sizes = {"B": 1, "H": 2, "S": 256, "D": 32}
    if "Hkv" in path.read_text():
        sizes["Hkv"] = 1
    small = make_spec(**sizes, dtype="bfloat16")
    drawn = draw(small, seed=5)
    traced = interpreter.trace(path.read_text(), scores(small, drawn), sizes)
    spec, buffers = traced["spec"], traced["buffers"]
    family = HopperFamily(spec)
    want = attend(spec, drawn, traced["score"], traced["keep"])
    used = {name: buffers[name] for name in (b.name for b in spec.buffers)}
    got = run(family.render(family.space().starts[0]).text(), spec, used)
    assert relative_error(got, want) < TOLERANCE["bfloat16"]


@st.composite
def compositions(draw):
    """Up to two score_mods and up to two mask_mods, and a schedule."""
    score = mask = None
    g, m = Builder(), Builder()
    for name in draw(st.lists(st.sampled_from(sorted(SCORES)), max_size=2)):
        score = SCORES[name](g, g.score if score is None else score)
    for name in draw(st.lists(st.sampled_from(sorted(MASKS)), max_size=2, unique=True)):
        part = MASKS[name](m)
        if mask is None:
            mask = part
        else:
            mask = mask & part if draw(st.booleans()) else mask | part
    sizes = {"B": B, "H": H, "S": S, "D": 16, "dtype": "bfloat16"}
    normalize = draw(st.sampled_from(["softmax", "softmax", "sigmoid"]))
    spec = make_spec(score=score, mask=mask, normalize=normalize, **sizes)
    points = list(enumerate_points(HopperFamily(spec).space()))
    seed = draw(st.integers(0, 1000))
    return spec, score, mask, draw(st.sampled_from(points)), seed


def _check(composition) -> None:
    spec, score, mask, point, seed = composition
    buffers = {b.name: np.asarray(BUFFERS[b.name]) for b in spec.buffers}
    device = Settings(seed=seed, multiprocessors=3)
    check_hopper(spec, score=score, mask=mask, buffers=buffers, settings=device, **point)


QUIET = [HealthCheck.too_slow]


@settings(max_examples=5, deadline=None, suppress_health_check=QUIET, derandomize=True)
@given(compositions())
def test_compositions_of_two(composition):
    _check(composition)


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=QUIET)
@given(compositions())
def test_many_compositions_of_two(composition):
    _check(composition)
