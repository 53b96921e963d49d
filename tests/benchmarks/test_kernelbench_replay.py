"""The published rows of KernelBench come out of the recording again; a changed one is found."""

import json
import os
import shlex

import pytest
from benchmarks.kernelbench import DEFAULT
from benchmarks.kernelbench_replay import VERDICTS, differences, main
from benchmarks.recorded_answers import answer

from hotloop.cli.main import main as hotloop
from hotloop.core.model import CallKey, Reply
from hotloop.core.verdict import Tier
from hotloop.errors import Pending
from hotloop.llm.recording import RecordedCall, Recording
from hotloop.verify.bundle import read_bundle

needs_data = pytest.mark.skipif(
    "HOTLOOP_KERNELBENCH" not in os.environ, reason="HOTLOOP_KERNELBENCH names no data set"
)


@needs_data
def test_a_published_row_comes_out_again_and_a_changed_one_is_found(tmp_path, capsys):
    published = json.loads(DEFAULT.read_text("utf-8"))
    row = next(r for r in published["rows"] if r["problem"] == "kernelbench/2/14")
    row["performance"]["latency_ms"] /= 2
    changed = tmp_path / "results.json"
    changed.write_text(json.dumps(published))
    # 2/67 is untouched: its best kernel was refused, which has to come out as well
    assert main(["--problems", "2/14,2/67", "--results", str(changed)]) == 1
    said = capsys.readouterr().out
    assert "kernelbench/2/14: performance: expected" in said
    assert "kernelbench/2/67" not in said
    assert "1 of 2 rows came out" in said


@needs_data
def test_a_suite_to_go_on_with_waits_for_finals_and_answers(tmp_path, capsys):
    assert main(["--problems", "2/14", "--open", str(tmp_path / "again")]) == 0
    said = capsys.readouterr().out
    assert "3 calls played" in said
    command = shlex.split(next(line for line in said.splitlines() if "hotloop bench" in line))[1:]
    assert hotloop([*command, "--close"]) == Pending.exit_code
    bundle = tmp_path / "finals.bundle"
    assert hotloop(["bundle", str(tmp_path / "again" / "suite"), "--out", str(bundle)]) == 0
    assert [item.tier for item in read_bundle(bundle).items] == [Tier.FINAL]
    assert hotloop([*command, "--verdicts", str(VERDICTS)]) == Pending.exit_code
    names = {
        path.name.split(".", 1)[1] for path in (tmp_path / "again" / "answers").glob("*-a0004*")
    }
    assert "prompt.md" in names  # the fourth call, which nobody has answered
    capsys.readouterr()


def test_a_reply_goes_to_its_own_call_and_never_over_another(tmp_path):
    def call(attempt: int, text: str) -> RecordedCall:
        key = CallKey(problem_id="p", attempt=attempt)
        return RecordedCall(key=key, prompt_id="old", prompt=None, reply=Reply(text=text))

    recording = Recording(model="someone", problems={"p": "p"}, calls=(call(1, "a"), call(2, "b")))
    for name in ("p-a0001-s0-12345678", "p-a0002-s0-12345678", "p-a0003-s0-12345678"):
        (tmp_path / f"{name}.prompt.md").write_text("?")
    (tmp_path / "p-a0002-s0-12345678.reply.md").write_text("mine")
    assert answer(tmp_path, recording) == 1
    assert answer(tmp_path, recording) == 0
    replies = {path.name[:7]: path.read_text() for path in tmp_path.glob("*.reply.md")}
    assert replies == {"p-a0001": "a", "p-a0002": "mine"}
    assert (tmp_path / "model.txt").read_text() == "someone\n"


@needs_data
def test_bad_input_is_one_line(tmp_path, capsys):
    for words, why in (
        (["--problems", "3/1"], "3/1"),
        (["--results", str(tmp_path / "gone.json")], "gone.json"),
        (["--data", str(tmp_path / "gone")], "gone"),
    ):
        assert main(words) == 2
        told = capsys.readouterr().err.strip()
        assert told.startswith("kernelbench_replay: ")
        assert why in told
        assert len(told.splitlines()) == 1


def test_every_field_of_a_row_counts_but_three():
    row = {"problem": "kernelbench/1/1", "status": "PASSED", "attempts": 3, "why": "", "calls": 4}
    assert differences(row, row | {"attempts": 9, "why": "waiting"}) == []
    assert len(differences(row, row | {"status": "FAILED", "calls": 3, "mode": "replay"})) == 3
    assert differences(row, None) == ["kernelbench/1/1: not in the results file"]
