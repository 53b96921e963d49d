"""What counts, what is killed, and how a run goes on where it was stopped."""

import inspect
import json
import os
import subprocess
import sys

import pytest
from benchmarks.mutation.bench import jobs_of
from benchmarks.mutation.plan import Choice, Progress, row_of
from benchmarks.mutation.report import result_rows
from benchmarks.mutation.rules import cuda_rules_of, rules_of
from benchmarks.mutation.score import kind_of, summary, table, witness_text
from benchmarks.mutation.substrates import SUBSTRATES, substrates_of
from benchmarks.mutation.worker import candidate_of
from benchmarks.results_file import ROOT, commit
from benchmarks.verifier_quality_page import _mutation

from hotloop.core.problem import Policy
from hotloop.verify.static_rules import check_candidate
from hotloop.worker import judge
from hotloop.worker.session import Session
from hotloop.worker.verification import Verification

INSIDE = {"loads": 0, "stores": 0}
OUTSIDE = {"loads": 3, "stores": 0}


def row(outcome, status=None, *, oob=INSIDE, key="k", rule="other_zero", group="other_values"):
    made = {
        "key": key, "substrate": "max_reduction", "family": "reduction", "rule": rule,
        "group": group, "diff": "-a\n+b",
        "oracle": {"outcome": outcome, "oob": oob, "witness": {"case": "nominal: negative/31"}},
    }  # fmt: skip
    if status is not None:
        made["verdict"] = {
            "status": status, "profile": "normal", "rule": "bulk", "profiles": ["normal"],
        }  # fmt: skip
    return made


@pytest.mark.parametrize(
    ("outcome", "status", "oob", "expected"),
    [
        ("shown", "INCORRECT_NUMERICAL", INSIDE, "killed"),
        ("shown", "COMPILE_ERROR", OUTSIDE, "killed"),
        ("shown", "PASSED", INSIDE, "survivor"),
        ("not_shown", "PASSED", INSIDE, "not_shown_passed"),
        ("not_shown", "INCORRECT_NUMERICAL", INSIDE, "not_shown_refused"),
        ("not_shown", "PASSED", OUTSIDE, "out_of_bounds_passed"),
        ("not_shown", "RUNTIME_ERROR", OUTSIDE, "out_of_bounds_refused"),
        ("raises", None, INSIDE, "no_run"),
        ("hangs", None, INSIDE, "no_run"),
        ("shown", None, INSIDE, "fault"),
    ],
)
def test_only_what_the_oracle_saw_counts(outcome, status, oob, expected):
    assert kind_of(row(outcome, status, oob=oob)) == expected


def test_the_score_is_killed_over_counted():
    rows = [
        *(row("shown", "INCORRECT_NUMERICAL", key=str(i)) for i in range(3)),
        row("shown", "PASSED", key="s"),
        row("not_shown", "PASSED", key="e"),
        row("raises", key="r", rule="axis_swapped", group="axes"),
    ]
    found = summary(rows)
    assert found["total"]["counted"] == 4
    assert found["total"]["score_frac"] == 0.75
    assert found["by_group"]["axes"]["score_frac"] is None
    assert found["killed_by_status"] == {"INCORRECT_NUMERICAL": 3}
    assert (found["device"], found["tier"], found["interpreter"]) == ("cpu", "fast", True)
    assert found["survivors_by_witness"] == {"negative": 1}
    assert "75.00%" in table(found)
    assert "negative/31" in witness_text(rows[3])


def test_a_survivor_is_kept_whole_and_a_killed_one_short():
    killed, survivor = result_rows([row("shown", "PASSED", key="b"), row("shown", "X", key="a")])
    assert "diff" not in killed
    assert survivor["diff"] == "-a\n+b"
    assert survivor["oracle"]["witness"]


def test_progress_goes_on_after_a_line_that_was_cut(tmp_path):
    path = tmp_path / "rows.jsonl"
    progress = Progress(path)
    for key in "abc":
        progress.add(row("shown", "PASSED", key=key))
    path.write_text(path.read_text()[:-20], encoding="utf-8")
    again = Progress(path)
    assert list(again.rows) == ["a", "b"]
    assert again.begun == {"max_reduction"}
    again.add(row("shown", "PASSED", key="c"))
    assert set(Progress(path).rows) == set("abc")


def test_progress_knows_the_machine_of_an_earlier_run(tmp_path):
    assert Progress(tmp_path / "rows.jsonl").machine({}) == {}
    assert Progress(tmp_path / "rows.jsonl").machine({"gpu": "H"})["gpu"] == "H"
    known = Progress(tmp_path / "rows.jsonl").machine({})
    assert known == {"gpu": "H", "cpu_count": os.cpu_count()}


def test_a_smaller_limit_takes_a_part_of_a_larger_one():
    substrate = substrates_of("hard_tanh")[0]
    few, many = (Choice(rules_of("masks,tiles"), 2, n, 0).of(substrate.source()) for n in (5, 12))
    assert len(few) == 5
    assert few == many[:5]
    assert len({m.rule for m in few}) == 5, "rules take turns"


def test_a_row_says_what_was_changed():
    substrate = substrates_of("hard_tanh")[0]
    mutant = Choice(rules_of("store_mask_dropped"), 1, None, 0).of(substrate.source())[0]
    made = row_of(substrate, substrate.source(), mutant)
    assert made["key"] == f"hard_tanh/{mutant.digest}"
    assert made["diff"].splitlines()[1].endswith("1.0))")
    assert made["commit"] == commit()
    json.dumps(made)


def test_a_file_of_several_commits_says_so():
    rows = [
        row("shown", "PASSED", key=k) | {"commit": c} for k, c in zip("abc", "yxy", strict=True)
    ]
    found = summary(rows, "cuda")
    assert found["commits"] == {"y": 2, "x": 1}
    assert [r["commit"] for r in result_rows(rows)] == ["y", "x", "y"]
    told = " ".join(_mutation(found))
    assert "Judged by several commits: 2 by y, 1 by x." in told
    assert "several commits" not in " ".join(_mutation(summary(rows[:1], "cuda")))


def test_substrates_are_many_distinct_and_there():
    assert len({s.name for s in SUBSTRATES}) == len(SUBSTRATES) >= 40
    for substrate in SUBSTRATES:
        assert substrate.needs_data or (ROOT / substrate.problem).is_file()
        assert substrate.kernel is None or substrate.kernel.is_file()
    kernels = {s.kernel for s in SUBSTRATES}
    assert {p for p in (ROOT / "benchmarks" / "mutants" / "kernels").glob("*.py")} <= kernels
    assert {p for p in (ROOT / "benchmarks" / "mutants" / "cuda").glob("*.cu")} <= kernels
    assert len([s for s in SUBSTRATES if s.language == "cuda"]) >= 12


@pytest.mark.parametrize(
    "substrate", [s for s in SUBSTRATES if s.kernel is not None], ids=lambda s: s.name
)
def test_a_substrate_keeps_the_static_rules(substrate):
    library = "anchored" if substrate.needs_data else "none"
    right = candidate_of(substrate, substrate.source())
    assert check_candidate(right, Policy(library_calls=library)) is None


def test_an_unknown_problem_is_named():
    with pytest.raises(ValueError, match="nonsense"):
        substrates_of("softmax,nonsense")
    assert {s.family for s in substrates_of("softmax")} == {"softmax"}


def test_a_final_verdict_counts_beside_the_fast_one():
    def both(fast, final, *, sampled=True, group="masks", key="k"):
        made = row("shown", fast, key=key, group=group)
        return made | {"final": {"status": final}, "sampled": sampled}

    rows = [
        both("INCORRECT_NUMERICAL", "INCORRECT_NUMERICAL", key="a"),
        both("PASSED", "RUNTIME_ERROR", key="b"),
        both("PASSED", "PASSED", key="c", group="sync"),
        both("PASSED", "RUNTIME_ERROR", key="d", sampled=False),
        row("shown", "INCORRECT_NUMERICAL", key="e"),
    ]
    found = summary(rows, "cuda")
    assert found["total"]["score_frac"] == 0.4
    assert found["final"]["total"] == {
        "counted": 3, "score_frac": pytest.approx(2 / 3), "killed": 2, "survivor": 1
    }  # fmt: skip
    assert found["final"]["worst_group"] == {"group": "sync", "score_frac": 0.0, "counted": 1}
    assert found["final"]["survivors_of_fast_killed"] == 2
    assert "66.67%" in table(found)
    kept = {r["key"]: r for r in result_rows(rows)}
    assert kept["b"]["final_status"] == "RUNTIME_ERROR"
    assert "final_status" not in kept["e"]
    assert summary(rows[4:], "cuda")["final"] is None


def test_the_final_sample_is_chosen_by_key_and_seed_before_anything_is_judged():
    def sample(share, seed):
        choice = Choice((), 1, 20, seed, (), share)
        return {k for k in map(str, range(2000)) if choice.in_final_sample(k)}

    third = sample(0.35, 0)
    assert 600 < len(third) < 800
    assert sample(0.2, 0) < third
    assert sample(0.35, 1) != third
    assert sample(0.0, 0) == set()


def test_a_row_is_done_when_its_verdicts_are_there():
    choice = Choice((), 1, 20, 0, (), 1.0)
    fast = row("shown", "PASSED")
    assert not choice.is_done(None)
    assert not choice.is_done(fast)
    assert choice.is_done(fast | {"final": {"status": "PASSED"}})
    assert not choice.is_done(fast | {"fault": "WorkerDied: ..."})
    assert choice.is_done(row("raises"))
    assert Choice((), 1, 20, 0).is_done(fast)


def test_jobs_see_every_kernel_before_the_second_part_of_any():
    wanted = substrates_of("hard_tanh,cuda_relu")
    jobs = jobs_of(wanted, Choice((), 1, 20, 0), 15)
    assert [(j.substrate.name, j.first, j.last) for j in jobs] == [
        ("hard_tanh", 0, 15), ("cuda_relu", 0, 15), ("hard_tanh", 15, 20), ("cuda_relu", 15, 30),
        ("cuda_relu", 30, 40),
    ]  # fmt: skip


def test_cuda_sources_are_asked_for_by_their_language():
    assert {s.language for s in substrates_of("cuda")} == {"cuda"}
    assert all("cpu" not in s.devices for s in substrates_of("cuda"))
    choice = Choice([], 1, 20, 0, cuda_rules_of("sync,masks"))
    substrate = substrates_of("cuda_cumsum")[0]
    found = choice.of(substrate.source(), "cuda")
    assert {m.group for m in found} == {"sync", "masks"}
    made = row_of(substrate, substrate.source(), found[0])
    assert made["language"] == "cuda"
    assert made["diff"].count("\n") == 1


@pytest.mark.slow
def test_a_dry_run_takes_two_kernels_up_both_tiers(tmp_path):
    out = tmp_path / "results.json"
    command = [sys.executable, "-m", "benchmarks.mutation", "--dry", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    record = json.loads(out.read_text())
    assert record["summary"]["mutants"] == 8
    assert record["summary"]["total"]["score_frac"] == 1.0
    assert record["summary"]["final"]["total"]["counted"] > 0
    assert "a second" in done.stdout


def test_the_untimed_judge_leaves_out_what_is_there():
    assert vars(Session)["_prepare_timing"]
    assert list(inspect.signature(Verification._time).parameters) == ["self", "evaluation", "tier"]
    assert {"Session", "Verification"} <= set(vars(judge))
