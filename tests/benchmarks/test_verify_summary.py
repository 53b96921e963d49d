"""Percentiles and targets of the verifier's benchmark."""

import pytest
from benchmarks.verify_summary import RELU, smoke_table, summarise, table


def verdict(what, status, *, wall_s=0.5, gpu_s=0.0):
    return {"what": what, "status": status, "wall_s": wall_s, "gpu_s": gpu_s, "message": "m"}


def row(problem, *verdicts, error=None):
    return {
        "problem": problem, "what": "verdicts", "verdicts": list(verdicts), "error": error,
        "cold_first_s": 20.0,
    }  # fmt: skip


ROWS = [
    row(
        RELU,
        verdict("cold", "PASSED", wall_s=30.0, gpu_s=29.0),
        verdict("new", "PASSED", wall_s=3.0, gpu_s=1.0),
        verdict("new", "INCORRECT_NUMERICAL", wall_s=99.0, gpu_s=98.0),
        verdict("static", "REJECTED_STATIC", wall_s=0.01),
        verdict("compile", "COMPILE_ERROR", wall_s=0.7),
        verdict("wrong", "INCORRECT_NUMERICAL", wall_s=5.0),
    ),
    row("kernelbench/1/1", verdict("new", "PASSED", wall_s=6.0, gpu_s=3.0)),
    {"problem": "kernelbench/1/3", "what": "verdicts", "error": "InfraError: x", "verdicts": []},
    {"problem": RELU, "what": "cpu_draw", "error": None, "draw_s": [6.0]},
]


def summary(rows=ROWS):
    return summarise(rows, parallel_judges=4, cpu_cores=64)


def test_percentiles_are_over_new_sources_that_passed():
    found = summary()
    assert found["gpu_s"] == {"n": 2, "p50": 2.0, "p90": 2.8, "max": 3.0}
    assert found["wall_s"]["max"] == 6.0
    assert found["cold_first_s"]["n"] == 2
    assert (found["problems"], found["failed_problems"]) == (3, 1)
    assert found["cpu_input_draw"]["draw_s"] == [6.0]


def test_what_should_not_have_happened_is_listed():
    assert summary()["unexpected_verdicts"] == [f"{RELU} new: INCORRECT_NUMERICAL: m"]


def test_targets_are_met_or_not_by_the_figures():
    targets = summary()["targets"]
    assert targets["gpu_p50_s"] == {"limit": 1.5, "value": 2.0, "met": False}
    assert targets["gpu_p90_s"]["met"] is True
    assert targets["early_failure_max_s"] == {"limit": 1.0, "value": 0.7, "met": True}
    assert targets["relu_wall_s"] == {"limit": 4.0, "value": 3.0, "met": True}


def test_nothing_measured_meets_nothing():
    assert {t["met"] for t in summary([])["targets"].values()} == {None}


def test_the_table_shows_failures_and_the_smoke_table_no_times():
    lines = table(ROWS).splitlines()
    assert len(lines) == 4
    assert "InfraError" in lines[3]
    assert "INCORRECT_NUMERICAL" in lines[1]
    smoke = smoke_table(ROWS[:1])
    assert "new:PASSED" in smoke
    assert "3.0" not in smoke
    with pytest.raises(KeyError):
        table([{"problem": "x"}])
