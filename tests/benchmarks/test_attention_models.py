"""Runs and rows of a model on the figure's six problems, apart from those of the templates."""

import json
from dataclasses import replace

import pytest
from attention_makers import FULL, made_row, results_of, slower
from benchmarks.attention_cases import FIGURE, Case
from benchmarks.attention_model_rows import (
    loop_adds,
    model_row,
    paired,
    summarise_models,
    template_adds,
)
from benchmarks.attention_models import (
    BLANK,
    ROUNDS,
    STARTED,
    lacks_start,
    main,
    model_runs,
    plan_of,
    select,
)
from benchmarks.attention_starts import start_kernels, start_path, write_starts
from benchmarks.pilot_tokens import Counter
from pilot_makers import journal, passed

from hotloop.core.attempt import Attempt
from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.record import to_json
from hotloop.core.verdict import Tier
from hotloop.prompts.programs import read_program

KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def copy(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i))


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        out = torch.empty_like(q)
        copy[(1,)](q, out, BLOCK=16)
        return out
"""

GLUON_KERNEL = """
import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def copy(x, y, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [1], [0])
    i = gl.arange(0, BLOCK, layout=layout)
    gl.store(y + i, gl.load(x + i))


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        out = torch.empty_like(q)
        copy[(1,)](q, out, BLOCK=32, num_warps=1)
        return out
"""


def test_there_are_24_runs_and_names_pick_them():
    runs = model_runs()
    assert len({run.name for run in runs}) == len(runs) == 24
    assert {run.language for run in runs} == {"triton", "gluon"}
    assert [run.name for run in select(runs, "started/attention-full")] == [
        "started/attention-full.triton", "started/attention-full.gluon",
    ]  # fmt: skip
    assert len(select(runs, "blank/")) == 12
    assert select(runs, "") == runs
    with pytest.raises(ValueError, match="nonsense"):
        select(runs, "nonsense")


def file_of_rows(tmp_path, rows):
    path = tmp_path / "attention.json"
    path.write_text(json.dumps(results_of(rows)))
    return path


def test_templates_come_from_rows_of_the_built_in_generator(tmp_path):
    rows = [made_row(Case(v, 128), start_kernels={"triton": KERNEL}) for v in FIGURE[1:]]
    rows += [made_row(FULL)]
    found = start_kernels(file_of_rows(tmp_path, rows))
    assert found == {v: {"triton": KERNEL} for v in FIGURE[1:]} | {"full": {}}
    with pytest.raises(ValueError, match="make bench-attention first"):
        start_kernels(tmp_path / "none.json")


def test_a_kernel_that_a_run_began_with_is_not_replaced(tmp_path):
    write_starts(tmp_path, {"full": {"triton": "a = 1"}})
    write_starts(tmp_path, {"full": {"triton": "a = 2"}})
    assert start_path(tmp_path, "full", "triton").read_text() == "a = 1"


@pytest.mark.parametrize("arm", [BLANK, STARTED])
@pytest.mark.parametrize("language", ["triton", "gluon"])
def test_a_run_searches_its_problem_with_or_without_the_template(tmp_path, arm, language):
    kernel = KERNEL if language == "triton" else GLUON_KERNEL
    assert read_program(kernel).language == language
    write_starts(tmp_path, {"full": {language: kernel}})
    runs = [r for r in model_runs() if r.arm == arm and r.problem.title == "full"]
    run = next(r for r in runs if r.language == language)
    assert not lacks_start(run, tmp_path)
    plan = plan_of(run, tmp_path)
    assert plan.problem.settings == {"D": 128, "S": 4096}
    assert plan.spec.budget.max_calls == ROUNDS
    assert plan.spec.language == language
    assert (plan.start is not None) == (arm == STARTED)


def test_a_run_without_its_template_is_named_and_skipped(tmp_path, capsys):
    rows = file_of_rows(tmp_path, [made_row(FULL)])
    folder = ["--folder", str(tmp_path / "runs"), "--builtin", str(rows)]
    assert main(["step", *folder, "--only", "started/attention-full.gluon"]) == 0
    assert "started/attention-full.gluon: skipped" in capsys.readouterr().out
    assert not list((tmp_path / "runs").rglob("*.sqlite*"))


def test_what_is_missing_is_said_in_one_line(tmp_path, capsys):
    folder = ["--folder", str(tmp_path / "runs")]
    for command, options, word in (
        ("step", ["--only", "started/", "--builtin", str(tmp_path / "none.json")], "none.json"),
        ("report", ["--out", str(tmp_path / "out.json")], "no run has begun"),
        ("bundle", ["--only", "nonsense", "--out", str(tmp_path / "b")], "nonsense"),
    ):
        assert main([command, *folder, *options]) == 2
        assert word in capsys.readouterr().err


def model_rows(ratios):
    """Return rows of (problem, arm) with these ratios over both flex baselines."""
    return [
        made_row(Case(problem, 128), {"flex": ratio, "flex_max_autotune": ratio})
        | {"generator": "model", "language": "triton", "arm": arm, "loop_over_template": None}
        for (problem, arm), ratio in ratios.items()
    ]


def test_what_the_template_adds_is_over_problems_with_both():
    rows = model_rows({("full", "blank"): 1.0, ("full", "started"): 1.5, ("alibi", "started"): 9.0})
    assert template_adds(paired(rows)) == 1.5
    assert template_adds(paired(rows[1:])) is None
    waiting = [rows[0] | {"status": "NO_FINAL"}, *rows[1:]]
    assert paired(waiting) == []


def test_a_run_that_failed_counts_as_one_where_two_arms_are_compared():
    pairs = {("full", "blank"): 1.2, ("full", "started"): 1.8, ("alibi", "blank"): 1.6}
    rows = model_rows(pairs | {("alibi", "started"): 9.0})
    rows[3] |= {"status": "FINAL_INCORRECT_NUMERICAL"}
    assert paired(rows) == [(1.0, 1.6), (1.8, 1.2)]
    assert template_adds(paired(rows)) == round((1.5 / 1.6) ** 0.5, 4)


def test_failures_are_in_the_mean_of_an_arm_and_what_is_awaited_is_counted_apart():
    rows = model_rows({("full", "blank"): 4.0, ("alibi", "blank"): 9.0, ("causal", "blank"): 9.0})
    rows[1] |= {"status": "NO_KERNEL", "tier": None, "performance": None}
    rows[2] |= {"status": "NO_FINAL"}
    blank = summarise_models(rows)["languages"]["triton"]["blank"]
    assert (blank["rows"], blank["passed"], blank["compared"]) == (3, 1, 2)
    assert blank["geomean_over_fastest_flex"] == 2.0
    survivors = summarise_models(rows[:1])["languages"]["triton"]["blank"]
    assert survivors["geomean_over_fastest_flex"] == 4.0


def test_the_summary_keeps_languages_and_arms_apart():
    rows = model_rows({("full", "blank"): 1.0, ("full", "started"): 1.5})
    rows[1] |= {"loop_over_template": 1.2}
    found = summarise_models(rows)["languages"]["triton"]
    assert found["blank"]["geomean_over_fastest_flex"] == 1.0
    assert found["started"]["geomean_over_fastest_flex"] == 1.5
    assert found["started"]["loop_over_template"] == 1.2
    assert found["blank"]["loop_over_template"] is None
    assert found["template_adds"] == 1.5
    empty = summarise_models(model_rows({("full", "blank"): 1.0}))["languages"]["triton"]
    assert empty["started"]["rows"] == 0
    assert empty["started"]["geomean_over_fastest_flex"] is None


def started(store, ms):
    """Add the verified starting kernel to a journal; return its id."""
    candidate = Candidate(language="triton", sources=(SourceFile(path="kernel.py", text=KERNEL),))
    attempt = Attempt(
        id=99, action="start", point={}, parents=(), generator="model", candidate_id=candidate.id,
        verdict=None, objective=None, started_s=0.0, finished_s=None,
    )  # fmt: skip
    store.propose(attempt, candidate)
    store.conclude(replace(attempt, verdict=passed(candidate.id, ms), objective=ms))
    return candidate.id


def note_final(store, candidate_id, ms, flex, tuned):
    """Add a final verdict with ratios over both flex baselines, of a session of its own."""
    verdict = passed(candidate_id, ms, Tier.FINAL)
    performance = replace(verdict.performance, speedup={"flex": flex, "flex_max_autotune": tuned})
    verdict = replace(verdict, performance=performance)
    store.note("final", {"candidate_id": candidate_id, "verdict": to_json(verdict)})


def row_of_run(start, best):
    """Return the row of a run whose start and best kernel have these final ratios, or none."""
    run = next(r for r in model_runs() if r.arm == STARTED)
    store = journal([0.9, 0.5])
    start_id = started(store, 0.6)
    best_id = next(a.candidate_id for a in store.attempts() if a.objective == 0.5)
    for candidate_id, ms, ratios in ((start_id, 0.6, start), (best_id, 0.5, best)):
        if ratios is not None:
            note_final(store, candidate_id, ms, *ratios)
    return model_row(run, store, Counter(unit="characters", count=len))


@pytest.mark.parametrize(
    ("start", "best", "gain"),
    [((1.4, 1.0), (1.5, 1.2), 1.2), ((1.4, 1.25), (1.5, 1.2), 0.96), ((1.2, 1.4), (1.2, 1.5), 1.0)],
)
def test_what_the_loop_adds_is_a_ratio_of_final_ratios_over_the_same_flex(start, best, gain):
    row = row_of_run(start, best)
    assert row["status"] == "PASSED"
    assert row["loop_over_template"] == pytest.approx(gain)
    assert row["loop_over"] == min(zip(best, ("flex", "flex_max_autotune"), strict=True))[1]


def test_without_both_final_verdicts_what_the_loop_adds_is_not_measured():
    without_start = row_of_run(None, (1.5, 1.2))
    assert (without_start["start_final"], without_start["loop_over_template"]) == (None, None)
    assert row_of_run((1.4, 1.0), (1.5, 1.2))["start_final"]["status"] == "PASSED"
    without_best = row_of_run(None, None)
    assert without_best["status"] == "NO_FINAL"
    assert without_best["loop_over_template"] is None
    failed_start = {"status": "INCORRECT_NUMERICAL", "tier": "final", "performance": None}
    best, start = made_row(FULL, candidate_id="b"), made_row(FULL, candidate_id="s")
    assert loop_adds(best, failed_start) is None
    assert loop_adds(best, start).ratio == 1.0
    doubted = slower(start, 1.0, speedup={})
    assert loop_adds(best, doubted) is None
    assert loop_adds(doubted, start) is None


def test_the_interval_of_what_the_loop_adds_has_the_ends_that_are_furthest_apart():
    best = made_row(FULL, {"flex": 1.5, "flex_max_autotune": 1.2}, candidate_id="b")
    start = made_row(FULL, {"flex": 1.4, "flex_max_autotune": 1.0}, candidate_id="s")
    found = loop_adds(best, start)
    assert found.ratio == pytest.approx(1.2)
    assert found.interval == pytest.approx((1.19 / 1.01, 1.21 / 0.99))
    without = slower(start, 1.0, speedup_ci={})
    assert (loop_adds(best, without).ratio, loop_adds(best, without).interval) == (1.2, None)


def test_a_start_that_is_the_best_adds_nothing_whatever_a_second_verdict_says():
    best = made_row(FULL, candidate_id="s")
    again = slower(best, 0.9, speedup={"flex": 1.4, "flex_max_autotune": 1.3})
    found = loop_adds(best, again)
    assert (found.ratio, found.interval) == (1.0, (1.0, 1.0))


def test_the_mean_of_what_the_loop_adds_has_an_interval_where_every_run_has_one():
    rows = model_rows({("full", "started"): 1.0, ("alibi", "started"): 1.5})
    for row, ends in zip(rows, ((1.0, 4.0), (4.0, 9.0)), strict=True):
        row |= {"loop_over_template": 2.0, "loop_over_template_ci": ends}
    assert summarise_models(rows)["languages"]["triton"]["started"]["loop_over_template_ci"] == [
        2.0, 6.0,
    ]  # fmt: skip
    rows[1]["loop_over_template_ci"] = None
    found = summarise_models(rows)["languages"]["triton"]["started"]
    assert (found["loop_over_template"], found["loop_over_template_ci"]) == (2.0, None)


def test_a_run_that_began_with_nothing_has_no_start():
    run = next(r for r in model_runs() if r.arm == BLANK)
    blank = model_row(run, journal([0.9, 0.5]), Counter(unit="characters", count=len))
    assert (blank["start_final"], blank["loop_over_template"]) == (None, None)
