from pathlib import Path

import pytest
from pydantic import ValidationError

from hotloop.config import Settings, resolve
from hotloop.errors import ConfigError


def test_defaults_fill_what_was_not_given():
    settings = resolve({"out": "runs/a", "seed": None}, has_gpu=True)
    assert settings.out == Path("runs/a")
    assert settings.device == "cuda"
    assert settings.budget.wall_s == 900.0
    assert settings.budget.max_candidates is None
    assert (settings.strategy, settings.language, settings.min_isolation) == (
        "tune",
        "triton",
        "T1",
    )


@pytest.mark.parametrize(
    ("asked", "has_gpu", "device"),
    [
        (None, True, "cuda"),
        (None, False, "cpu"),
        ("auto", False, "cpu"),
        ("cpu", True, "cpu"),
        ("cuda", False, "cuda"),
    ],
)
def test_the_device_is_resolved_once(asked, has_gpu, device):
    assert resolve({"out": "r", "device": asked}, has_gpu=has_gpu).device == device


@pytest.mark.parametrize(("text", "seconds"), [("45s", 45.0), ("1h30m", 5400.0), (90, 90.0)])
def test_a_budget_is_a_duration(text, seconds):
    assert resolve({"out": "r", "budget_s": text}, has_gpu=False).budget.wall_s == seconds


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget_s": "soon"}, "budget_s: .*'soon'"),
        ({"budget_s": 0}, "budget_s: .*0"),
        ({"max_candidates": 0}, "max_candidates: .*1"),
        ({"parallel": 0}, "parallel: .*1"),
        ({"language": "fortran"}, "language: .*'fortran'"),
        ({"device": "tpu"}, "device: .*'tpu'"),
        ({"min_isolation": "T9"}, "min_isolation: expected 'T0', 'T1' or 'T2', got 'T9'"),
        ({"min_isolation": "T3"}, "min_isolation: .*'T3'"),
        ({"seed": -1}, "seed: .*-1"),
        ({"speed": 3}, "unknown option 'speed'; known: out, device"),
        ({"out": None}, "out is missing"),
    ],
)
def test_wrong_options_are_one_line(options, message):
    with pytest.raises(ConfigError, match=message) as caught:
        resolve({"out": "r", **options}, has_gpu=True)
    assert "\n" not in str(caught.value)


def test_all_wrong_options_are_named_together():
    with pytest.raises(ConfigError, match="parallel.*; .*seed|seed.*; .*parallel"):
        resolve({"out": "r", "seed": -1, "parallel": 0}, has_gpu=True)


def test_settings_do_not_change():
    settings = resolve({"out": "r"}, has_gpu=False)
    with pytest.raises(ValidationError):
        settings.seed = 1


def test_there_are_few():
    assert len(Settings.model_fields) <= 18, "an option that nobody needs to set is a constant"


@pytest.mark.parametrize("tier", ["T0", "T1", "T2"])
def test_every_tier_that_the_cage_knows_can_be_asked_for(tier):
    assert resolve({"out": "r", "min_isolation": tier}, has_gpu=False).min_isolation == tier
