"""The benchmark of audits: its rows, its way round a problem that hangs, its page."""

import io
import json
import os

import pytest
from benchmarks.audit import SMALL, Child, main
from benchmarks.audit_child import audit_row, found, serve
from benchmarks.audit_table import document, summarise, table
from benchmarks.results_file import commit

from hotloop.core.audit import Audit, FakeGroup, Trial, TrialState
from hotloop.problems import list_kernelbench, load_problem_spec

DATA = os.environ.get("HOTLOOP_KERNELBENCH")
needs_data = pytest.mark.skipif(not DATA, reason="HOTLOOP_KERNELBENCH names no data set")
RELU = "kernelbench/1/19"


def trial(name, state, **fields):
    return Trial(name=name, group=FakeGroup.OUTPUT, state=state, **fields)


def row(name, **fields):
    base = {"key": name, "problem": name, "rankable": True, "refused": None, "error": None}
    return base | {"wall_s": 1.0, "reasons": [], "findings": []} | fields


ROWS = [
    row(RELU, passed_nominal=["copy of x"], caught_later={"copy of x": "nominal: normal"}),
    row("kernelbench/2/80", rankable=False, reasons=["output 0 is zero everywhere"]),
    row("kernelbench/2/81", rankable=False, refused="it needs | more memory"),
    row("kernelbench/2/82", rankable=None, error="not done within 45 s"),
    row("kernelbench/1/1", passed_nominal=[], caught_later={}),
]


def test_a_row_tells_what_passed_and_what_caught_it():
    told = found(
        Audit(
            key="k",
            trials=(
                trial("zeros", TrialState.CAUGHT, caught_by="nominal: shipped"),
                trial(
                    "copy of x", TrialState.CAUGHT, caught_by="nominal: normal",
                    passed=("nominal: shipped",),
                ),
                trial("ones", TrialState.ACCEPTED, passed=("nominal: shipped", "nominal: normal")),
                trial("transposed", TrialState.SKIPPED, why="not square"),
            ),
            reasons=("ones pass",),
        )
    )  # fmt: skip
    assert told["rankable"] is False
    assert told["passed_nominal"] == ["copy of x", "ones"]
    assert told["caught_later"] == {"copy of x": "nominal: normal"}
    assert told["accepted"] == ["ones"]
    assert told["fakes_tried"] == 3
    assert told["skipped"] == {"not square": 1}


def test_the_summary_counts_and_the_table_names():
    summary = summarise(ROWS)
    counts = [summary[k] for k in ("problems", "errors", "refused", "ranked", "not_ranked")]
    assert counts == [5, 1, 1, 2, 2]
    assert summary["fakes_passed_nominal_by_kind"] == {"copy": 1}
    assert summary["fakes_caught_later_by_values"] == {"nominal: normal": 1}
    lines = table(ROWS).splitlines()
    assert lines[0].startswith("kernelbench/2/80")
    assert "not done within 45 s" in table(ROWS)
    assert lines[-1] == "5 problems: 2 ranked, 2 not (1 of them refused), 1 without a result"


def test_the_page_has_every_problem_that_says_something():
    record = {"rows": ROWS, "commit": "c", "date": "d", "environment": {"gpu": "G", "torch": "t"}}
    page = document(record, "audit_g.json")
    assert "| kernelbench/2/80 | not ranked: output 0 is zero everywhere |" in page
    assert "| kernelbench/2/81 | refused: it needs \\| more memory |" in page
    assert "| kernelbench/1/19 | copy of x (nominal: normal) |" in page
    assert "kernelbench/1/1 " not in page
    assert "Of 4 KernelBench problems 2 are ranked" in page


def test_bad_input_is_refused(capsys, monkeypatch):
    monkeypatch.delenv("HOTLOOP_KERNELBENCH", raising=False)
    assert main(("--device", "cpu")) == 2
    assert "HOTLOOP_KERNELBENCH" in capsys.readouterr().err


@needs_data
def test_small_sizes_are_constants_of_their_problems(capsys):
    names = [entry.name for entry in list_kernelbench(DATA)]
    assert set(SMALL) <= set(names)
    for name, settings in SMALL.items():
        load_problem_spec(name, device="cpu", data=DATA, settings=settings)
    assert main(("--device", "cpu", "--problems", "kernelbench/9/9")) == 2
    assert "kernelbench/9/9" in capsys.readouterr().err


@needs_data
def test_a_child_answers_and_goes_on_after_a_refused_reference():
    questions = [
        {"problem": RELU, "settings": {"batch_size": 4, "dim": 30}},
        {"problem": RELU, "settings": {"batch_size": 4, "dim": 0}},
        {"problem": "kernelbench/9/9", "settings": {}},
        {"problem": RELU, "settings": {}},
    ]
    lines = io.StringIO("".join(json.dumps(q) + "\n" for q in questions))
    answers = io.StringIO()
    assert serve("cpu", lines, answers) == 1, "an error that is no problem's ends it"
    rows = [json.loads(line) for line in answers.getvalue().splitlines()]
    assert len(rows) == 3
    assert rows[0]["rankable"] is True
    assert rows[0]["caught_later"]["copy of x"] == "nominal: normal"
    assert rows[1]["error"] is None
    assert rows[2]["error"] is not None


@needs_data
@pytest.mark.slow
def test_a_problem_that_takes_too_long_is_a_row_and_another_child_goes_on():
    child = Child("cpu", "")
    try:
        question = {"problem": RELU, "settings": SMALL[RELU]}
        assert "not done within" in child.ask(question, 0.01)["error"]
        assert child.ask(question, 60.0)["error"] is None
    finally:
        child.close()


@needs_data
@pytest.mark.slow
def test_the_benchmark_goes_on_where_it_was_cut(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HOTLOOP_COMMIT", "the-same")
    commit.cache_clear()
    out = tmp_path / "audit.json"
    args = ("--device", "cpu", "--out", str(out), "--problems")
    assert main((*args, RELU)) == 0
    first = json.loads(out.read_text())
    assert main((*args, f"{RELU},kernelbench/2/80")) == 0
    second = json.loads(out.read_text())
    commit.cache_clear()
    assert [r["key"] for r in second["rows"]] == [RELU, "kernelbench/2/80"]
    assert second["rows"][0] == first["rows"][0], "it was not measured again"
    assert second["summary"]["not_ranked"] == 1
    assert second["command"] == "make bench-audit"
    capsys.readouterr()


def test_a_row_of_an_unknown_problem_says_so():
    assert audit_row({"problem": "missing.py"}, "cpu")["error"] is not None
