"""Known degenerate problems of KernelBench, at small sizes, if the data set is there."""

import os

import pytest

from hotloop.problems import load_problem_spec
from hotloop.worker.audit_alone import audit_problem

DATA = os.environ.get("HOTLOOP_KERNELBENCH")
pytestmark = pytest.mark.skipif(not DATA, reason="HOTLOOP_KERNELBENCH names no data set")


def audited(name, **settings):
    return audit_problem(load_problem_spec(name, device="cpu", data=DATA, settings=settings), "cpu")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "settings", "reason"),
    [
        ("2/23", {"batch_size": 4, "D": 8, "H": 8, "W": 8}, "zero but for rounding"),
        ("2/80", {"batch_size": 16, "in_features": 64, "out_features": 64}, "zero everywhere"),
        ("2/83", {"batch_size": 2, "depth": 8, "height": 8, "width": 8}, "zero everywhere"),
        ("2/66", {"batch_size": 16, "in_features": 64, "out_features": 64}, "random numbers"),
    ],
)
def test_known_degenerate_problems_are_not_ranked(name, settings, reason):
    found = audited(f"kernelbench/{name}", **settings)
    assert not found.rankable
    assert reason in found.reasons[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("1/1", {"N": 64}),
        ("1/19", {"batch_size": 8, "dim": 200}),
        ("1/51", {"batch_size": 4, "dim1": 30, "dim2": 40}),
    ],
)
def test_sound_problems_are_ranked(name, settings):
    found = audited(f"kernelbench/{name}", **settings)
    assert found.rankable, found.reasons
    assert bool(found.findings) == (name == "1/19"), "ReLU is the identity on [0, 1)"
