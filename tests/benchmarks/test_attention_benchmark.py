"""What becomes of runs in the attention benchmark: rows, sums, what is kept, what is shown."""

import json
import sys
import time
from dataclasses import replace

import pytest
from attention_makers import failed_row, made_row
from benchmarks.attention import main
from benchmarks.attention_cases import CASES, Case
from benchmarks.attention_ratios import speedup_of
from benchmarks.attention_run import (
    RunOptions,
    family_of,
    gpu_uuid,
    is_start,
    measure,
    start_kernels,
    summarise_correctness,
)
from benchmarks.attention_table import add_reference, smoke_table, summarise, table
from benchmarks.gpu_pool import run_command, run_jobs
from pilot_makers import journal

from benchmarks import results_file
from hotloop.core.candidate import Candidate, SourceFile

CAUSAL = Case("causal", 64)


def passed(ratio, interval):
    row = made_row(CAUSAL, {"flex": ratio, "flex_max_autotune": ratio, "cudnn": 0.75})
    performance = row["performance"] | {"speedup_ci": {"flex": interval}}
    return row | {"performance": performance}


FAILED = failed_row(Case("full", 64))


@pytest.fixture
def fresh_commit():
    results_file.commit.cache_clear()
    yield
    results_file.commit.cache_clear()


@pytest.fixture
def reference(tmp_path):
    entry = {"shape_BHSD": [4, 16, 4096, 64], "variant": "causal", "flex_ms": 0.42}
    path = tmp_path / "reference.json"
    path.write_text(json.dumps({"rows": [entry | {"plain_triton_ms": 0.40}]}))
    return path


def test_what_cannot_be_done_is_said_in_one_line(capsys):
    for argv, word in (
        (["--rows", "nonsense"], "nonsense"),
        (["--budget", "soon", "--plan"], "duration"),
        (["--device", "cpu", "--rows", "s16384"], "S 4096"),
        (["--summarise", "/nowhere.json"], "nowhere"),
    ):
        assert main(argv) == 2
        assert word in capsys.readouterr().err


def test_the_plan_is_printed_and_nothing_runs(capsys):
    assert main(["--plan", "--gpus", "2"]) == 0
    text = capsys.readouterr().out
    assert f"{len(CASES)} rows" in text
    assert "2 GPUs: " in text


def test_a_reference_file_of_another_form_is_found_before_any_work(tmp_path, capsys):
    path = tmp_path / "reference.json"
    assert main(["--reference", str(path), "--device", "cpu"]) == 2
    path.write_text("{}")
    assert main(["--reference", str(path), "--device", "cpu"]) == 2
    assert "rows" in capsys.readouterr().err


def test_the_summary_counts_failures_as_one_and_each_size_once():
    def over(case, ratio, **changes):
        return made_row(case, {"flex": ratio, "flex_max_autotune": ratio / 2}, **changes)

    documents = [over(Case("document", 128), 4.0), over(Case("document", 128, packing=11), 1.0)]
    needles = over(Case("alibi", 128, profile="needles"), 9.0)
    rows = [over(CAUSAL, 2.0), *documents, needles, FAILED]
    summary = summarise(rows, gpus=4)
    assert (summary["rows"], summary["passed"], summary["sizes"]) == (5, 4, 3)
    assert summary["failed_counted_as_1"] == ["full-64"]
    assert summary["geomean_speedup_flex"] == pytest.approx(4 ** (1 / 3), abs=1e-4)
    assert summary["geomean_speedup_fastest_flex"] == 1.0
    assert (summary["geomean_needles_flex"], summary["geomean_needles_fastest_flex"]) == (9, 4.5)
    assert summary["wins_over_flex"] == 3
    assert summarise([], gpus=1)["geomean_speedup_flex"] is None


def test_a_fast_tier_is_no_result_and_counts_as_a_failure():
    fast = passed(3.0, [2.9, 3.1]) | {"status": "NO_FINAL"}
    assert speedup_of(fast) is None
    summary = summarise([fast], gpus=1)
    assert (summary["passed"], summary["geomean_speedup_flex"]) == (0, 1.0)


def test_what_flex_cannot_compute_is_in_no_mean_over_it():
    formula = made_row(Case("sigmoid", 64), {"compile": 3.0})
    broken = failed_row(Case("sigmoid", 64)) | {"setup_baselines_ms": {"compile": 1.0}}
    for row in (formula, broken):
        assert summarise([row], gpus=1)["geomean_speedup_flex"] is None


@pytest.mark.parametrize(("ratio", "met"), [(1.019, True), (1.018, False)])
def test_the_needed_ratio_is_that_of_the_plain_kernel_within_three_per_cent(reference, ratio, met):
    rows = [passed(ratio, [1.0, 1.1]), FAILED]
    add_reference(rows, reference)
    assert rows[0]["reference"]["needed_ratio"] == pytest.approx(0.97 * 0.42 / 0.40, abs=1e-4)
    assert rows[0]["reference"]["met"] is met
    assert "reference" not in rows[1]
    assert summarise(rows, gpus=1)["reference_met"] == met


def test_the_table_has_a_line_a_row_also_for_a_failed_one(reference):
    rows = [passed(1.21, [1.2, 1.22]), FAILED]
    add_reference(rows, reference)
    _, first, second = table(rows).splitlines()
    assert all(part in first for part in ("1.210", "[1.200, 1.220]", "0.750", "replay", "yes"))
    assert "no GPU" in second


def test_without_a_gpu_no_time_is_shown():
    text = smoke_table([passed(1.21, [1.2, 1.22]) | {"verdicts": {"PASSED": 2}}])
    assert "PASSED" in text
    assert "ms" not in text
    assert "1.2" not in text


def test_the_worst_case_of_each_profile_is_kept():
    def case(profile, rmse):
        return {
            "profile": profile, "rmse": rmse, "eager_rmse": 1.0, "max_abs": 1.0,
            "eager_max_abs": 1.0, "passed": True,
        }  # fmt: skip

    cases = [case("normal", 0.5), case("normal", 0.9), case("large", 0.1)]
    found = summarise_correctness({"cases": cases, "timed_calls_checked": 7})
    assert found["cases"] == 3
    assert found["worst"]["normal"]["rmse_over_eager"] == 0.9
    assert found["worst"]["large"]["rmse_over_eager"] == 0.1
    assert summarise_correctness(None) is None


@pytest.mark.usefixtures("fresh_commit")
def test_finished_rows_of_the_same_commit_are_kept_and_no_others(tmp_path, monkeypatch):
    path = tmp_path / "results.json"
    monkeypatch.setenv("HOTLOOP_COMMIT", "abc")
    rows = [passed(1.2, [1.1, 1.3]), FAILED]
    results_file.write_results(
        path, command="make x", environment={"gpu": "g"}, rows=rows, summary={}
    )
    assert json.loads(path.read_text())["commit"] == "abc"
    assert [r["row"] for r in results_file.rows_of(path, "abc")] == ["causal-64"]
    assert results_file.rows_of(path, "abd") == []
    assert results_file.rows_of(tmp_path / "none.json", "abc") == []


@pytest.mark.usefixtures("fresh_commit")
def test_changed_sources_are_another_commit(tmp_path, monkeypatch):
    monkeypatch.delenv("HOTLOOP_COMMIT", raising=False)
    monkeypatch.setattr(results_file, "ROOT", tmp_path)  # no git there
    assert results_file.commit().startswith("unknown+")
    (tmp_path / "src").mkdir()
    digests = {results_file.source_digest(tmp_path)}
    for text in ("a = 1", "a = 2"):
        (tmp_path / "src" / "a.py").write_text(text)
        digests.add(results_file.source_digest(tmp_path))
    assert len(digests) == 3


def test_each_gpu_takes_the_next_job_and_none_starts_too_late():
    taken = []

    def work(job, gpu):
        taken.append((job, gpu))
        time.sleep(0.05)

    left = run_jobs(range(6), ["0", "1"], work, start_until=time.monotonic() + 60)
    assert left == []
    assert sorted(job for job, _ in taken) == list(range(6))
    assert {gpu for _, gpu in taken} == {"0", "1"}
    assert run_jobs([1, 2], ["0"], work, start_until=time.monotonic() - 1) == [1, 2]
    assert len(taken) == 6


def test_a_command_that_outlives_its_deadline_is_stopped():
    command = [sys.executable, "-c", "import time; print('hello', flush=True); time.sleep(60)"]
    done = run_command(command, env={}, deadline=time.monotonic() + 1)
    assert done.code is None
    assert done.stdout == "hello\n"
    assert done.wall_s < 30
    failing = [sys.executable, "-c", "raise SystemExit('this went wrong')"]
    done = run_command(failing, env={}, deadline=time.monotonic() + 30)
    assert (done.code, done.last_words) == (1, "this went wrong")


def options(tmp_path):
    return RunOptions(
        device="cpu", budget="20s", runs=tmp_path, deadline=time.monotonic() + 200,
        max_candidates=1,
    )  # fmt: skip


def test_a_gpu_is_named_where_nvidia_smi_is_there(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu_uuid("0") is None
    smi = tmp_path / "nvidia-smi"
    smi.write_text('#!/bin/sh\necho "GPU-of-$2"\n')
    smi.chmod(0o755)
    assert gpu_uuid("3") == "GPU-of-3"
    smi.write_text("#!/bin/sh\nexit 9\n")
    assert gpu_uuid("3") is None


def candidate(language):
    return Candidate(language=language, sources=(SourceFile(path="kernel.py", text="x = 1"),))


def test_a_family_is_what_the_schedule_or_the_language_says():
    assert family_of({"family": "hopper"}, candidate("triton")) == "hopper"
    assert family_of({}, candidate("gluon")) == "hopper"
    assert family_of({"BLOCK_M": 64}, candidate("triton")) == "portable"
    assert family_of({}, candidate("cuda")) == "cuda"


def test_models_begin_with_the_fastest_kernel_in_a_language():
    store = journal([0.9, 0.5, 0.7])
    fastest = next(a for a in store.attempts() if a.objective == 0.5)
    text = store.candidate(fastest.candidate_id).text()
    assert start_kernels(store, store.attempts()) == {"triton": text}
    assert start_kernels(store, []) == {}


def test_models_start_from_the_six_at_d_128():
    assert [case.key for case in CASES if is_start(case)] == [
        f"{v}-128" for v in ("full", "causal", "relative", "alibi", "document", "softcap")
    ]


def test_a_run_that_fails_is_a_row_with_its_error(tmp_path):
    row = measure(Case("no_such_variant", 64), "", options(tmp_path))
    assert row["status"] == "ERROR"
    assert "no_such_variant" in row["error"]
    assert row["exit_code"] == 2
    assert row["performance"] is None


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_run_without_a_gpu_becomes_a_row_without_times(tmp_path):
    row = measure(Case("softcap", 64), "", options(tmp_path))
    assert row["error"] is None
    assert row["status"] == "PASSED"
    assert row["workload"]["S"] == 128
    assert row["performance"] is None
    assert row["schedule"]
    assert row["verdicts"] == {"PASSED": 1}
    assert row["correctness"]["passed"]
    assert row["command"].startswith("hotloop optimize examples/attention/softcap.py --device cpu")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_row_times_the_kernel_that_another_row_found(tmp_path):
    base = measure(Case("relative", 128), "", options(tmp_path))
    assert "ModelNew" in base["kernel_source"]
    needles = Case("relative", 128, profile="needles")
    own = replace(options(tmp_path), max_candidates=None, kernel=base["kernel_source"])
    row = measure(needles, "", own)
    assert (row["error"], row["status"]) == (None, "PASSED")
    assert row["verdicts"] == {"PASSED": 1}
    assert (row["candidate_id"], row["family"]) == (base["candidate_id"], base["family"])
    assert row["command"].endswith("--start 'kernel of relative-128' --max-candidates 1")
    assert str(tmp_path) not in row["command"]
    assert "kernel_source" not in row
