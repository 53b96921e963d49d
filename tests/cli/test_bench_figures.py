"""Figures of a suite: in the record always, as text once all runs have ended, never for a CPU."""

from dataclasses import replace

import pytest

from hotloop.cli.bench_figures import figures, tables
from hotloop.problems import KernelBenchEntry
from hotloop.suite.planning import plan_suite
from hotloop.suite.standing import Standing, State

CODE = "class Model:\n    def forward(self, x):\n        return x\n"
REASON = "ProblemError: it does not fit"


def plan_on(device, folder):
    entry = KernelBenchEntry(level=1, problem_id=19, title="19_ReLU", code=CODE)
    return plan_suite(
        [entry], folder / "s", {"judge": "bundle", "device": device, "model": "dir:a"}
    )


def standing(plan, state):
    return Standing(member=plan.record.problems[0], state=state, reason=REASON)


def test_a_problem_that_was_not_run_counts_as_not_solved_and_says_why(tmp_path):
    plan = plan_on("cuda", tmp_path)
    rows = [standing(plan, State.SKIPPED)]
    found = figures(plan, rows)
    assert list(found["columns"]) == ["model/as_shipped/cuda"]
    text = tables(plan, rows, found)
    assert "geomean" in text
    assert REASON in text


@pytest.mark.parametrize("state", [State.OPEN, State.REPLY, State.VERDICT])
def test_no_tables_before_the_end(tmp_path, state):
    plan = plan_on("cuda", tmp_path)
    rows = [standing(plan, state)]
    assert tables(plan, rows, figures(plan, rows)) == ""


def test_no_tables_of_speed_on_a_cpu(tmp_path):
    plan = plan_on("cpu", tmp_path)
    rows = [replace(standing(plan, State.DONE), reason=None)]
    found = figures(plan, rows)
    assert tables(plan, rows, found) == ""
    assert "geomean" not in str(found)
