"""The pilot's figures, computed by hand on a tiny made-up pilot."""

import math
from functools import partial

import pytest
from benchmarks.pilot_rows import row_of, with_earlier_final
from benchmarks.pilot_summary import failure_classes, group, speedup, summarise
from benchmarks.pilot_tokens import Counter
from pilot_makers import WITH_LIBRARY, failed, journal, run

from hotloop.core.verdict import Status

CHARACTERS = Counter(unit="characters", count=len)
STATIC = partial(failed, status=Status.REJECTED_STATIC, kind="policy_violation", rule="try_except")
COMPILE = partial(failed, status=Status.COMPILE_ERROR, kind="compile_error")


def row(outcomes, name="kernelbench/1/1", arm="main", **options):
    made = {k: options.pop(k) for k in ("language", "operator_class") if k in options}
    return row_of(run(name, arm, **made), journal(outcomes, **options), CHARACTERS)


def test_a_row_of_a_correct_kernel():
    found = row([failed, 0.5, 0.25], final=0.25)
    assert (found["status"], found["tier"], found["is_finished"]) == ("PASSED", "final", True)
    assert (found["calls"], found["rounds_to_first_correct"], found["best_attempt"]) == (3, 2, 3)
    assert found["correct_after"] == [False, True, True]
    assert found["fast_ms"] == [None, 0.5, 0.25]
    assert found["performance"]["speedup"] == {"eager": 8.0, "compile": 4.0}
    assert found["environment"] == {"gpu": "an H200"}
    assert found["model"] == "somebody"
    assert found["tokens"] == {
        "unit": "characters", "answered_calls": 3, "prompt": 300, "reply": 30,
        "reasoning": "unknown",
    }  # fmt: skip


def test_a_missing_final_is_no_result():
    found = row([0.5], final=None)
    assert (found["status"], found["tier"], found["performance"]) == ("NO_FINAL", None, None)
    assert speedup(found, "eager") == 1.0
    assert group([found])["correct"] == 0


def test_a_kernel_that_fails_the_final_tier_is_no_result():
    found = row([0.5], final=Status.INCORRECT_NUMERICAL)
    assert found["status"] == "FINAL_INCORRECT_NUMERICAL"
    assert found["rounds_to_first_correct"] is None
    assert found["performance"] is None
    assert [f["tier"] for f in found["failures"]] == ["final"]
    assert speedup(found, "compile") == 1.0


def test_an_open_attempt_or_a_run_that_waits_is_not_finished():
    assert not row([0.5, None], final=0.5)["is_finished"]
    assert not row([0.5], final=0.5, reason="waiting")["is_finished"]
    summary = summarise([row([0.5], final=0.5, reason="waiting")])
    assert not summary["is_complete"]
    assert summary["unfinished"] == ["main/kernelbench-1-1.triton"]


def test_failures_count_as_one_and_slower_kernels_as_they_are():
    rows = [
        row([0.5], final=0.5),  # 4 over eager, 2 over compile
        row([COMPILE, COMPILE], "kernelbench/1/2"),  # 1 and 1
        row([4.0], "kernelbench/1/3", final=4.0),  # 0.5 and 0.25
    ]
    found = group(rows)
    assert (found["rows"], found["correct"], found["correct_percent"]) == (3, 2, 66.7)
    assert found["statuses"] == {"PASSED": 2, "NO_KERNEL": 1}
    eager = found["speedup"]["eager"]
    assert eager["rows"] == 3
    assert eager["geometric_mean"] == pytest.approx(math.pow(4 * 1 * 0.5, 1 / 3))
    assert (eager["median"], eager["best"], eager["wins"]) == (1.0, 4.0, 1)
    assert eager["without_result"] == 1
    fastest = found["speedup"]["fastest"]
    assert fastest["geometric_mean"] == pytest.approx(math.pow(2 * 1 * 0.25, 1 / 3))
    assert found["rounds_to_first_correct"] == {
        "median": 1.0, "distribution": {"1": 2}, "never": 1,
    }  # fmt: skip


def test_a_win_needs_the_interval_and_not_only_the_ratio():
    just_over = row([2.0 / 1.025], final=2.0 / 1.025)  # 1.025 over eager; its interval from 1.015
    clearly_over = row([2.0 / 1.04], final=2.0 / 1.04)  # 1.04; from 1.0296
    assert group([just_over])["speedup"]["eager"]["wins"] == 0
    assert group([clearly_over])["speedup"]["eager"]["wins"] == 1


def test_levels_classes_languages_and_rankable_are_kept_apart():
    rows = [
        row([0.5], final=0.5),
        row([0.5], "kernelbench/2/7", final=0.5, operator_class="conv+norm", rankable=False),
        row([COMPILE], language="cuda"),
    ]
    summary = summarise(rows)
    assert (summary["triton"]["rows"], summary["cuda"]["rows"]) == (2, 1)
    assert summary["triton_rankable"]["rows"] == 1
    assert set(summary["by_level"]) == {"level 1", "level 2"}
    assert set(summary["by_class"]) == {"level 1: matmul", "level 2: conv+norm"}
    assert summary["ablation"] == {"problems": [], "arms": {}}


def test_the_ablation_pairs_the_same_problems():
    rows = [
        row([COMPILE, 0.5], final=0.5),  # 2 over compile, the fastest baseline
        row([0.25], "kernelbench/1/2", final=0.25),  # 4
        row([0.25], "kernelbench/1/3", final=0.25),  # in no other arm
        row([COMPILE, 1.0], arm="sample", final=1.0),  # 1
        row([COMPILE, COMPILE], "kernelbench/1/2", arm="sample"),  # 1
    ]
    found = summarise(rows)["ablation"]
    assert found["problems"] == ["kernelbench/1/1", "kernelbench/1/2"]
    main, sample = found["arms"]["main"], found["arms"]["sample"]
    assert main["correct_after"] == [1, 2]
    assert sample["correct_after"] == [0, 1]
    # Fast times over the 1 ms of `compile`: 1 and 4, then 2 and 4; the second run has one call.
    assert main["speedup_after"] == pytest.approx([math.sqrt(4), math.sqrt(8)])
    assert sample["speedup_after"] == [1.0, 1.0]
    assert main["speedup"]["geometric_mean"] == pytest.approx(math.sqrt(8))
    assert sample["speedup"]["geometric_mean"] == 1.0
    assert sample["main_over_this"] == {
        "geometric_mean": pytest.approx(math.sqrt(8)), "main_better": 2, "this_better": 0,
    }  # fmt: skip
    assert main["main_over_this"]["geometric_mean"] == 1.0


def test_a_loop_that_loses_to_sampling_is_told():
    rows = [row([1.0], final=1.0), row([0.5], arm="sample", final=0.5)]
    sample = summarise(rows)["ablation"]["arms"]["sample"]["main_over_this"]
    assert sample == {"geometric_mean": 0.5, "main_better": 0, "this_better": 1}


def test_failures_are_counted_by_status_kind_and_rule():
    lost = partial(failed, status=Status.NO_CODE, kind="call_failed")
    rows = [
        row([STATIC, STATIC, COMPILE, lost]),
        row([STATIC, failed, 0.5], "kernelbench/1/2", final=0.5),
    ]
    found = failure_classes(rows)
    assert (found["total"], found["calls_that_failed"]) == (5, 1)
    first = found["most_common"][0]
    assert (first["status"], first["kind"], first["rule"], first["count"]) == (
        "REJECTED_STATIC", "policy_violation", "try_except", 3,
    )  # fmt: skip
    assert [(e["row"], e["attempt"]) for e in first["examples"]] == [
        ("main/kernelbench-1-1.triton", 1), ("main/kernelbench-1-2.triton", 1),
    ]  # fmt: skip
    assert first["examples"][0]["message"] == "first line"


def test_a_library_call_in_the_best_kernel_is_named():
    assert row([0.5], final=0.5, source=WITH_LIBRARY)["library_anchor"] is True
    without = WITH_LIBRARY.replace("torch.matmul(a, b)", "torch.empty_like(a)")
    assert row([0.5], final=0.5, source=without)["library_anchor"] is False
    assert row([COMPILE])["library_anchor"] is None


def test_an_earlier_final_counts_only_where_there_is_none():
    earlier, none = row([0.5], final=0.5), row([0.4, 0.3], final=None)
    found = with_earlier_final(none, earlier)
    assert (found["status"], found["best_attempt"], found["calls"]) == ("PASSED", 1, 2)
    assert found["final_of_earlier_report"]
    assert found["performance"] == earlier["performance"]
    failed_final = row([0.5], final=Status.INCORRECT_NUMERICAL)
    assert with_earlier_final(failed_final, earlier) == failed_final
    assert with_earlier_final(none, failed_final) == none
    assert with_earlier_final(none, None) == none
