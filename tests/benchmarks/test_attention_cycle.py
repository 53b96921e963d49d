"""Whole cycles of `attention_models` on two of its runs: nobody has to lend a hand between steps.

Replies, verdicts and starting kernels are made up here and stand in no results file of the project.
"""

import json
from dataclasses import replace

import pytest
from attention_makers import FULL, made_row, results_of
from benchmarks.attention_models import main
from benchmarks.pilot_answers import unanswered
from benchmarks.results_file import ROOT
from pilot_makers import passed
from test_attention_models import GLUON_KERNEL, KERNEL

from hotloop.core.verdict import Tier
from hotloop.verify.bundle import JudgeError, Verdicts, read_bundle, read_verdicts, write_verdicts
from hotloop.verify.bundle_plan import Plan

RECORDED = ROOT / "benchmarks" / "recordings" / "model_pilot_verdicts.jsonl"
START_MS, FIRST_MS = 1.0, 1.5
STATED = "MS = "
NAMES = ("started/attention-full.gluon", "blank/attention-full.triton")
ONLY = ",".join(NAMES)
FLEX_MS = {"flex": 1.2, "flex_max_autotune": 1.1}


def driver(folder):
    """Return a function that calls the driver on the two runs."""
    rows = folder / "builtin.json"
    kernels = {"triton": KERNEL, "gluon": GLUON_KERNEL}
    rows.write_text(json.dumps(results_of([made_row(FULL, start_kernels=kernels)])))

    def call(command, *options):
        more = ["--builtin", str(rows)] if command == "step" else []
        words = ["--folder", str(folder / "all"), "--only", ONLY]
        return main([command, *words, *more, *options])

    return call


def ms_of(candidate):
    """Return the time that a candidate's first line states, that of a start where it does not.

    A statement, not a comment: kernels that differ in comments alone are one kernel.
    """
    first = candidate.text().splitlines()[0]
    return float(first.removeprefix(STATED)) if first.startswith(STATED) else START_MS


def judged(bundle, infos, refused=()):
    """Return verdicts on all of a bundle; a short final has only its place to tell it apart."""
    verdicts, errors = [], []
    for item in bundle.items:
        if item.candidate is None:
            continue
        if item.candidate.id in refused:
            errors.append(
                JudgeError(
                    problem_id=item.problem_id, candidate_id=item.candidate.id, tier=item.tier,
                    error="InfraError", message="lost", asked=item.asked,
                )
            )  # fmt: skip
            continue
        ms = ms_of(item.candidate)
        made = passed(item.candidate.id, ms, item.tier)
        ratios = {name: flex / ms for name, flex in FLEX_MS.items()}
        ends = {name: (r - 0.01, r + 0.01) for name, r in ratios.items()}
        is_final = item.tier is Tier.FINAL
        performance = replace(made.performance, speedup=ratios, speedup_ci=ends if is_final else {})
        verdicts.append(
            replace(made, problem_id=item.problem_id, performance=performance, short=item.short)
        )
    found = {key: infos[key] for key in bundle.problems}
    return Verdicts(infos=found, verdicts=tuple(verdicts), errors=tuple(errors))


def answer_all(folder, number):
    """Answer each prompt with a kernel in its language, faster from round to round."""
    for prompt in folder.glob("batch-*/*.prompt.md"):
        kernel = GLUON_KERNEL if "`@gluon.jit`" in prompt.read_text() else KERNEL
        reply = prompt.with_name(prompt.name.replace(".prompt.", ".reply."))
        reply.write_text(f"```python\n{STATED}{FIRST_MS - 0.1 * number:.1f}\n{kernel}\n```\n")


def go(folder, answer=judged):
    """Go round until nothing is asked any more; return the bundles, and the report."""
    call = driver(folder)
    infos = read_verdicts(RECORDED).infos
    bundles, verdicts, out = [], folder / "verdicts", folder / "report.json"
    assert call("step", "--verdicts", str(RECORDED)) == 0
    for number in range(20):
        has_prompts = bool(unanswered(folder / "all" / "answers"))
        if has_prompts:
            assert call("prompts", "--batches", "2") == 0
            answer_all(folder / "all", number)
            assert call("collect") == 0
            assert call("step") == 0
        path = folder / f"bundle-{number}"
        if call("bundle", "--out", str(path)) == 0:
            bundles.append(read_bundle(path))
            write_verdicts(verdicts, answer(bundles[-1], infos))
            assert call("step", "--verdicts", str(verdicts)) == 0
        elif not has_prompts:
            assert call("report", "--out", str(out)) == 0
            return bundles, json.loads(out.read_text())
    pytest.fail("expected both runs to end within 20 rounds")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return the bundles of a finished cycle, and its report."""
    return go(tmp_path_factory.mktemp("cycle"))


@pytest.mark.slow
def test_two_runs_come_from_nothing_to_a_report(finished):
    bundles, report = finished
    started, blank = (next(r for r in report["rows"] if r["row"] == name) for name in NAMES)
    assert {started["calls"], blank["calls"]} == {8}
    assert {started["status"], blank["status"]} == {"PASSED"}
    assert started["loop_over_template"] == pytest.approx(
        1.0 / started["performance"]["latency_ms"]
    )
    assert started["start_final"]["short"]
    low, high = started["loop_over_template_ci"]
    assert low < started["loop_over_template"] < high
    assert blank["start_final"] is None
    assert report["summary"]["languages"]["gluon"]["started"]["loop_measured"] == 1


@pytest.mark.slow
def test_a_problem_is_loaded_once_for_all_its_runs_and_never_by_itself(finished):
    bundles, _ = finished
    assert all(item.candidate is not None for bundle in bundles for item in bundle.items)
    for bundle in bundles:
        assert len(bundle.problems) == 1
        plan = Plan(bundle, lambda: 1e9, seats=1)
        group = plan.next_group()
        assert len(group.waiting) == len(bundle.items)
        plan.claim(group, len(bundle.items))
        plan.leave(group, is_loaded=True)
        assert plan.next_group() is None
    assert max(len(bundle.items) for bundle in bundles) > 1


@pytest.mark.slow
def test_the_starts_final_is_in_the_bundle_of_the_runs_own_and_short(finished):
    bundles, report = finished
    finals = [[i for i in b.items if i.tier is Tier.FINAL] for b in bundles]
    start = next(r for r in report["rows"] if r["row"] == NAMES[0])["start_final"]["candidate_id"]
    (with_start,) = (found for found in finals if start in {i.candidate.id for i in found})
    assert [i.short for i in with_start if i.candidate.id == start] == [True]
    others = [i for i in with_start if i.candidate.id != start]
    assert any(i.candidate.language == "gluon" and not i.short for i in others)


@pytest.mark.slow
def test_counters_are_asked_for_until_the_last_call_and_no_longer(finished):
    bundles, _ = finished
    fast = [i for b in bundles for i in b.items if i.tier is Tier.FAST]
    assert [i.wants_counters for i in fast].count(False) == 2  # the last one of each run
    assert fast[0].wants_counters


@pytest.mark.slow
def test_a_start_that_no_machine_judges_ends_unmeasured_and_holds_nothing_up(tmp_path):
    def without_final_of_start(bundle, infos):
        return judged(bundle, infos, refused={i.candidate.id for i in bundle.items if i.short})

    bundles, report = go(tmp_path, without_final_of_start)
    assert sum(i.short for b in bundles for i in b.items) == 2  # so often it was asked for
    started = next(r for r in report["rows"] if r["row"] == NAMES[0])
    assert (started["status"], started["loop_over_template"]) == ("PASSED", None)
