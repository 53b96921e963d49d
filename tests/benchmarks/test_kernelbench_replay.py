"""The published rows of KernelBench come out of the recording again; a changed one is found."""

import json
import os

import pytest
from benchmarks.kernelbench import DEFAULT
from benchmarks.kernelbench_replay import differences, main

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
