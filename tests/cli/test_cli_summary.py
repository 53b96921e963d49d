import json
from dataclasses import replace

import pytest

from hotloop.cli import summary
from hotloop.cli.verdict_text import verdict_text
from hotloop.core.attempt import Attempt
from hotloop.core.record import to_json
from hotloop.core.verdict import (
    CaseResult,
    Correctness,
    Evidence,
    KernelResources,
    Performance,
    Stage,
    Status,
    Tier,
    Verdict,
)
from hotloop.engine import RunResult, StopReason
from hotloop.plan import plan_search

PROBLEM = """\
B, H, S, D = 1, 2, 32, 16
dtype = "float32"


def score_mod(score, b, h, q_idx, kv_idx):
    return score + (q_idx - kv_idx)
"""
CASE = CaseResult(
    workload="nominal", profile="needles", output="0", passed=True, rule=None, rmse=1e-3,
    max_abs=2e-3, eager_rmse=1.1e-3, eager_max_abs=3e-3, golden_rms=1.0, mismatches=0,
    worst_index=(0, 1, 2, 3),
)  # fmt: skip
RESOURCES = KernelResources(name="attend", registers=168, spill_bytes=0, shared_bytes=98304)


def verdict(*, device="cpu", tier=Tier.FAST, status=Status.PASSED):
    performance = None
    if device == "cuda" and status is Status.PASSED:
        performance = Performance(
            latency_ms=0.4, spread_ms=0.01, samples=50, timer="cupti", l2="cold",
            baselines={"flex": 0.5}, speedup={"flex": 1.25}, speedup_ci={"flex": (1.2, 1.3)},
        )  # fmt: skip
    failed = status is not Status.PASSED
    return Verdict(
        status=status, stage=Stage.CORRECTNESS, message="", candidate_id="c", problem_id="p",
        tier=tier, device=device, performance=performance, resources=(RESOURCES,),
        correctness=Correctness(cases=(CASE,), deterministic=True),
        evidence=Evidence(kind="wrong_values", message="too large") if failed else None,
    )  # fmt: skip


def result(fast, final=None, reason=StopReason.WALL, detail=None):
    attempt = Attempt(
        id=4, action="schedule", point={}, parents=(), generator="builtin", candidate_id="c",
        verdict=fast, objective=None, started_s=0.0, finished_s=1.0,
    )  # fmt: skip
    best = 4 if fast is not None and fast.passed else None
    return RunResult(
        best_attempt_id=best, fast=fast if best else None, final=final, attempts=(attempt,),
        spent_s=60.0, setup_s=2.0, reason=reason, detail=detail,
    )  # fmt: skip


@pytest.fixture
def plan(tmp_path):
    problem = tmp_path / "relative.py"
    problem.write_text(PROBLEM)
    return plan_search(problem, device="cpu", settings={"S": 16}, seed=3, out=tmp_path / "run")


def test_the_first_line_names_the_builtin_generator_and_the_way_to_a_model(plan):
    first = summary.opening(plan, is_default_model=True)[0]
    assert "builtin" in first
    assert "--model" in first
    assert "builtin" not in summary.opening(plan, is_default_model=False)[0]


def test_a_result_is_one_line_then_the_kernel_and_how_to_repeat_it(plan):
    lines = summary.closing(plan, result(verdict())).splitlines()
    assert lines[0].startswith("attempt 4: PASSED")
    assert lines[1].endswith("best/kernel.py")
    assert "hotloop verify" in lines[2]
    assert "--set S=16" in lines[2]


def test_on_a_cpu_the_summary_has_no_time_of_a_kernel(plan):
    text = summary.closing(plan, result(verdict())) + verdict_text(verdict())
    assert " ms" not in text
    assert "x over" not in text
    assert "168 registers" in text


def test_on_a_gpu_it_has_time_and_ratio(plan):
    final = verdict(device="cuda", tier=Tier.FINAL)
    text = summary.closing(plan, result(verdict(device="cuda"), final))
    assert "0.4 ms, 1.25x over flex [1.20, 1.30]" in text
    assert "flex 0.5 ms: 1.25x" in verdict_text(final)


def test_a_kernel_without_a_final_check_is_not_reported(plan):
    text = summary.closing(plan, result(verdict(device="cuda"), reason=StopReason.INTERRUPTED))
    assert text.startswith("no kernel to report")
    assert "no final check" in text
    assert "hotloop optimize" in text


def test_a_kernel_that_failed_its_final_check_says_why(plan):
    final = verdict(device="cuda", tier=Tier.FINAL, status=Status.REWARD_HACK)
    text = summary.closing(plan, result(verdict(device="cuda"), final))
    assert "failed its final check: REWARD_HACK" in text


def test_without_any_pass_the_verdicts_are_counted(plan):
    text = summary.closing(plan, result(verdict(status=Status.INCORRECT_NUMERICAL)))
    assert "1 INCORRECT_NUMERICAL" in text


@pytest.mark.parametrize(
    ("passed", "reason", "goes_on"),
    [
        (False, StopReason.EXHAUSTED, False),
        (True, StopReason.EXHAUSTED, True),  # its final check is to come
        (False, StopReason.WALL, True),
        (False, StopReason.INTERRUPTED, True),
    ],
)
def test_where_nothing_is_left_to_try_no_command_goes_on(plan, passed, reason, goes_on):
    fast = verdict(device="cuda", status=Status.PASSED if passed else Status.COMPILE_ERROR)
    ended = replace(result(fast, reason=reason), best_attempt_id=None)
    last = summary.closing(plan, ended).splitlines()[-1]
    assert last.startswith("look closer: hotloop show")
    assert ("; go on: hotloop optimize" in last) is goes_on


def test_the_json_record_says_whether_it_passed_and_where_it_is(plan):
    record = json.loads(json.dumps(to_json(summary.record(plan, result(verdict())))))
    assert record["passed"] is True
    assert record["best_folder"].endswith("/best")
    assert record["verdict"]["status"] == "PASSED"
    missing = to_json(summary.record(plan, result(None)))
    assert (missing["passed"], missing["best_folder"], missing["verdict"]) == (False, None, None)


def test_a_failed_check_shows_the_rule_and_the_place():
    from dataclasses import replace

    failed = replace(CASE, passed=False, rule="tile", rmse=None)
    checked = replace(
        verdict(status=Status.INCORRECT_NUMERICAL),
        correctness=Correctness(cases=(CASE, failed), deterministic=True),
    )
    text = verdict_text(checked)
    assert "1 of 2 calls" in text
    assert "not finite" in text
    assert "rule tile at [0, 1, 2, 3]" in text


def test_the_effort_says_how_the_budget_went(plan):
    assert "1 candidate in 60 s; the budget is spent\n" in summary.closing(plan, result(verdict()))
    text = summary.closing(plan, result(verdict(), detail="one verification took 60 s"))
    assert "the budget is spent (one verification took 60 s)" in text


def test_what_the_assembler_lost_stands_below_its_kernel():
    lost = "C7511: wgmma.mma_async instructions are serialized"
    quiet = verdict()
    told = replace(quiet, resources=(replace(RESOURCES, advice=(lost,)),))
    assert f"0 bytes spilled, 98304 bytes shared\n            lost: {lost}\n" in verdict_text(told)
    assert "lost:" not in verdict_text(quiet)
