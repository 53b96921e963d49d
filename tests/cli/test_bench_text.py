"""The table of `bench`: what stands in a row, counts by level, and the exit code of it all."""

from dataclasses import replace
from pathlib import Path

import pytest

from hotloop.cli import bench_text
from hotloop.cli.bench import exit_code
from hotloop.engine import RunResult, StopReason
from hotloop.problems import KernelBenchEntry
from hotloop.suite.folder import Member
from hotloop.suite.planning import plan_suite
from hotloop.suite.standing import Standing, State
from hotloop.testing.fakes import Tier, fake_verdict

CODE = "class Model:\n    def forward(self, x):\n        return x\n"


@pytest.fixture
def plan(tmp_path):
    entry = KernelBenchEntry(level=1, problem_id=1, title="1_X", code=CODE)
    options = {"judge": "bundle", "device": "cuda", "model": "dir:answers"}
    return plan_suite([entry], tmp_path / "s", options)


def member(number, level=1):
    return Member(
        name=f"kernelbench/{level}/{number}", level=level, number=number, title="X",
        problem_id="0" * 16,
    )  # fmt: skip


def timed(tier):
    verdict = fake_verdict(0.5, "c", tier=tier)
    baselines = {"eager": 1.5, "torch.compile": 1.0}
    speedup = {"eager": 3.0, "torch.compile": 2.0}
    performance = replace(verdict.performance, baselines=baselines, speedup=speedup)
    return replace(verdict, performance=performance)


def result(**given):
    nothing = {
        "best_attempt_id": None, "fast": None, "final": None, "attempts": (), "spent_s": 1.0,
        "setup_s": 2.0, "reason": StopReason.CALLS, "calls": 3,
    }  # fmt: skip
    return RunResult(**nothing | given)


DONE = Standing(
    member=member(1),
    state=State.DONE,
    result=result(best_attempt_id=1, fast=timed(Tier.FAST), final=timed(Tier.FINAL)),
)
FAST_ONLY = Standing(
    member=member(2),
    state=State.REPLY,
    result=result(best_attempt_id=1, fast=timed(Tier.FAST), waiting=("a/1.prompt.md",)),
)
SKIPPED = Standing(member=member(7, 2), state=State.SKIPPED, reason="ProblemError: \x1b[31mtoo big")
OPEN = Standing(member=member(8, 2), state=State.OPEN)
FAILED = Standing(member=member(9, 2), state=State.FAILED, reason="WorkerDied: gone")


def test_a_row_has_time_and_speedup_over_the_fastest_baseline(plan):
    lines = bench_text.closing(plan, [DONE, FAST_ONLY, SKIPPED, OPEN]).splitlines()
    done, reply, skipped, unbegun = lines[1:5]
    for part in ("kernelbench/1/1", "done", "PASSED", "2.00x over torch.compile", "3"):
        assert part in done
    assert "waiting for reply" in reply
    assert "skipped: ProblemError: [31mtoo big" in skipped
    assert unbegun.split() == ["kernelbench/2/8", "open", "-", "-", "-", "0"]
    assert not any(c for c in "\n".join(lines) if c == "\x1b")


def test_a_kernel_counts_as_passed_at_the_final_tier_only(plan):
    levels = bench_text.record(plan, [DONE, FAST_ONLY, SKIPPED])["levels"]
    assert (levels["1"]["problems"], levels["1"]["passed"], levels["1"]["done"]) == (2, 1, 1)
    assert (levels["2"]["problems"], levels["2"]["passed"], levels["2"]["skipped"]) == (1, 0, 1)


def test_the_record_says_what_was_measured_and_of_what_tier(plan):
    done, reply, skipped = bench_text.record(plan, [DONE, FAST_ONLY, SKIPPED])["problems"]
    assert (done["tier"], done["latency_ms"], done["speedup"]) == ("final", 0.5, 2.0)
    assert (reply["tier"], reply["passed"], reply["waiting"]) == ("fast", False, ["a/1.prompt.md"])
    assert (skipped["status"], skipped["speedup"], skipped["calls"]) == (None, None, 0)
    assert Path(done["folder"]).parts[-3:] == ("s", "runs", "1-1")


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([DONE], 0),
        ([DONE, SKIPPED], 0),
        ([SKIPPED, SKIPPED], 1),
        ([DONE, FAST_ONLY, SKIPPED], 4),
        ([DONE, FAST_ONLY, OPEN], 1),
        ([DONE, FAST_ONLY, OPEN, FAILED], 3),
    ],
)
def test_the_exit_code_says_what_is_left(rows, code):
    assert exit_code(rows) == code


def test_what_is_to_be_answered_is_named_with_its_problem(plan):
    files = tuple(f"answers/{n}.prompt.md" for n in range(7))
    many = replace(FAST_ONLY, result=result(waiting=files))
    lines = bench_text.closing(plan, [DONE, many]).splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("7 file(s) to be answered"))
    assert lines[at].endswith("then the same command:")
    assert lines[at + 1 : at + 6] == [f"  {f} (kernelbench/1/2)" for f in files[:5]]
    assert lines[at + 6] == "  ... and 2 more"
    assert "to be answered" not in bench_text.closing(plan, [DONE])
