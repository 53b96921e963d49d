"""`hotloop audit`: its table, its JSON, its line before a run, and what is no problem."""

import json

import pytest

from hotloop.cli.audit import audit_line, table
from hotloop.cli.audit_notice import with_audit_notice
from hotloop.cli.main import main
from hotloop.core.audit import Audit, FakeGroup, Trial, TrialState
from hotloop.core.event import Event
from hotloop.core.problem import Problem, ProblemInfo, ProblemKind, TensorSpec
from hotloop.core.record import to_json
from hotloop.wiring import stored_audit

RELU = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.rand(16, 24)]
def get_init_inputs():
    return []
"""
COPY = Trial(
    name="copy of x", group=FakeGroup.OUTPUT, state=TrialState.CAUGHT,
    caught_by="nominal: normal", passed=("nominal: shipped",), same=("nominal: shipped",),
)  # fmt: skip
ZEROS = Trial(
    name="zeros", group=FakeGroup.OUTPUT, state=TrialState.ACCEPTED,
    passed=("nominal: shipped", "nominal: normal"),
)  # fmt: skip
SQUARE = Trial(
    name="transposed", group=FakeGroup.OUTPUT, state=TrialState.SKIPPED, why="it is not square"
)
FOUND = Audit(key="k", trials=(COPY, SQUARE), findings=("a copy passes on some values",))
BAD = Audit(key="k", trials=(SQUARE, COPY, ZEROS), reasons=("it is zero", "zeros pass"))
CLEAN = Audit(key="k", trials=(SQUARE,))
PROBLEM = Problem(name="relu", kind=ProblemKind.KERNELBENCH, source=RELU)


def info(audit):
    spec = TensorSpec(name="x", shape=(2,), dtype="float32", strides=(1,))
    return ProblemInfo(
        problem_id="p", device="cpu", inputs=(spec,), outputs=(spec,), parameters=(), graph=None,
        attention=None, flops=None, io_bytes=16, rankable=audit is None or audit.rankable,
        audit=audit,
    )  # fmt: skip


def test_the_table_says_the_answer_and_puts_what_passed_first():
    lines = table(PROBLEM, "cpu", BAD).splitlines()
    assert lines[0].startswith("relu on cpu is NOT ranked")
    assert lines[1:3] == ["  reason   it is zero", "  reason   zeros pass"]
    rows = [line.split()[1] for line in lines if line.startswith("output: ")]
    assert rows == ["zeros", "copy"]
    assert "nominal: shipped (the right values)" in table(PROBLEM, "cpu", FOUND)
    assert table(PROBLEM, "cpu", FOUND).startswith("relu on cpu can be ranked")


def test_what_was_not_tried_is_counted_by_reason_and_no_verdict_on_the_checks():
    late = [
        Trial(name=str(i), group=group, state=TrialState.SKIPPED, why="no time was left for it")
        for i, group in enumerate([FakeGroup.READING, FakeGroup.READING, FakeGroup.PRECISION])
    ]
    text = table(PROBLEM, "cpu", Audit(key="k", trials=(COPY, SQUARE, *late)))
    assert text.splitlines()[-3:] == [
        "not tried: 4 of 5 fakes; they say nothing of the checks",
        "  it is not square: 1 of output",
        "  no time was left for it: 2 of reading, 1 of precision",
    ]
    assert "not tried" not in table(PROBLEM, "cpu", Audit(key="k", trials=(COPY,)))


def test_one_line_where_something_was_found():
    assert audit_line(FOUND) == "audit: a copy passes on some values"
    assert audit_line(BAD) == (
        "audit: a speed-up here is not ranked: it is zero (and 1 more: hotloop audit shows all)"
    )
    assert audit_line(CLEAN) is None
    assert audit_line(None) is None


@pytest.mark.parametrize(("audit", "warnings"), [(FOUND, 1), (BAD, 1), (CLEAN, 0), (None, 0)])
def test_a_loaded_problem_warns_of_what_was_found(audit, warnings):
    heard = []
    listen = with_audit_notice(heard.append)
    listen(Event(kind="setup", payload={"info": info(audit)}))
    assert [e.kind for e in heard] == ["setup"] + ["warning"] * warnings
    listen(Event(kind="budget", payload={}))
    assert heard[-1].kind == "budget"


def test_a_run_that_goes_on_takes_over_the_stored_audit():
    notes = [{"info": to_json(info(None))}, {"info": to_json(info(FOUND))}]
    assert stored_audit(notes) == FOUND
    assert stored_audit([]) is None
    old = to_json(info(None))
    del old["audit"]
    assert stored_audit([{"info": old}]) is None


def test_bad_input_is_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nothing.py").write_text("x = 1")
    for args in (("missing.py",), ("nothing.py",), ("kernelbench/1/19",)):
        monkeypatch.delenv("HOTLOOP_KERNELBENCH", raising=False)
        assert main(("audit", *args, "--device", "cpu")) == 2
        captured = capsys.readouterr()
        complaints = [x for x in captured.err.splitlines() if x.startswith("hotloop: ")]
        assert len(complaints) == 1
        assert captured.out == ""


def test_a_cage_that_there_is_not_is_told_before_the_reference_is_loaded(tmp_path, capsys):
    (tmp_path / "relu.py").write_text(RELU)
    words = ("audit", str(tmp_path / "relu.py"), "--device", "cpu", "--min-isolation", "T9")
    assert main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--min-isolation: expected T0, T1 or T2, got 'T9'" in line


@pytest.mark.slow
def test_the_command_audits_a_file(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "relu.py").write_text(RELU)
    assert main(("audit", "relu.py", "--device", "cpu", "--json")) == 0
    captured = capsys.readouterr()
    record = json.loads(captured.out)
    assert record["rankable"] is True
    trials = {t["name"]: t for t in record["audit"]["trials"]}
    assert trials["copy of x"]["caught_by"] == "nominal: normal"
    assert trials["zeros"]["state"] == "caught"
    assert "relu on cpu can be ranked" in captured.err


@pytest.mark.slow
def test_a_reference_that_fails_is_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.py").write_text(RELU.replace("torch.relu(x)", "x @ x"))
    assert main(("audit", "bad.py", "--device", "cpu")) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines()[-1].startswith("hotloop: bad: forward, line 5")
