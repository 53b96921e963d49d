"""Table and summary of what a final tier costs, and what is refused before anything runs."""

from benchmarks.verifier_quality_page import FINALS, _final_cost

from benchmarks import final_cost


def final(kind, wall_s, *tools, status="PASSED", skipped=()):
    return {
        "kind": kind, "wall_s": wall_s, "status": status, "stage_s": {"sanitizer": 8.25},
        "checks": ["repeats", *(f"sanitizer:{t}" for t in tools)],
        "checks_skipped": {f"sanitizer:{t}": "why" for t in skipped},
    }  # fmt: skip


def row(problem, *finals, error=None):
    return {"problem": problem, "finals": list(finals), "error": error}


GOOD = row(
    "examples/row_softmax.py",
    final("full", 31.5, "memcheck", "initcheck", skipped=("racecheck",)),
    final("short", 12.0, skipped=("memcheck",)),
)


def test_the_table_has_a_line_for_each_final_and_each_error():
    text = final_cost.table([GOOD, row("kernelbench/1/1", error="DeviceLost: no GPU")])
    lines = text.splitlines()
    assert len(lines) == 4
    assert lines[1].split() == [
        "examples/row_softmax.py", "full", "PASSED", "31.5", "0.0", "0.0", "8.2", "0.0",
        "memcheck", "initcheck",
    ]  # fmt: skip
    assert lines[2].endswith("none")
    assert "DeviceLost" in lines[3]


def test_the_summary_has_the_longest_of_each_kind():
    slow = row("kernelbench/1/1", final("full", 61.0), final("short", 3.0))
    found = final_cost.summary([GOOD, slow])
    assert found["full"] == {"limit_s": 60.0, "longest_s": 61.0}
    assert found["short"]["longest_s"] == 12.0
    assert (found["within_limits"], found["tools_ran"], found["tools_skipped"]) == (1, 2, 1)


def test_a_final_that_did_not_pass_is_not_within_limits():
    assert final_cost.is_within_limits(GOOD)
    assert not final_cost.is_within_limits(row("p", final("full", 3.0, status="RUNTIME_ERROR")))
    assert not final_cost.is_within_limits(row("p", error="x"))


def test_unknown_problems_and_missing_data_are_one_line(capsys, monkeypatch):
    monkeypatch.delenv("HOTLOOP_KERNELBENCH", raising=False)
    assert final_cost.main(["--problems", "kernelbench/9/9"]) == 2
    assert final_cost.main(["--problems", "kernelbench/1/1"]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert "kernelbench/9/9" in errors[0]
    assert "HOTLOOP_KERNELBENCH" in errors[1]


def test_what_was_not_measured_is_said():
    found = final_cost.summary([GOOD])
    assert found["suite"] == len(final_cost.SUBJECTS) == FINALS
    assert "5 of the benchmark's 6 problems were not measured." in " ".join(_final_cost(found))
    whole = final_cost.summary([GOOD] * FINALS)
    assert "not measured" not in " ".join(_final_cost(whole))
