"""A benchmark in slices: what is kept, what is measured again, when the results file is written."""

import json

import pytest
from attention_makers import FULL, failed_row, machine, made_row, results_of
from benchmarks.attention import _parse, main
from benchmarks.attention_cases import CASES, Case
from benchmarks.attention_kept import partial_path
from benchmarks.attention_plan import slices
from benchmarks.attention_session import Benchmark, chosen_slice, known_seconds

from benchmarks import results_file

CAUSAL = Case("causal", 64)


@pytest.fixture
def fresh_commit():
    results_file.commit.cache_clear()
    yield
    results_file.commit.cache_clear()


def on(gpu_count, path, run_row, *argv):
    """Return the benchmark's exit code on so many GPUs, with rows from `run_row`."""
    args = _parse([*argv, "--runs", str(path.parent / "runs")])
    gpus = [str(i) for i in range(gpu_count)]
    cases = [CAUSAL, FULL, Case("softcap", 128)]
    return Benchmark(args, gpus, path, machine(run_row)).run(cases, [])


def names(path):
    return sorted(row["row"] for row in json.loads(path.read_text())["rows"])


@pytest.mark.usefixtures("fresh_commit")
def test_a_cut_benchmark_goes_on_with_what_is_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOTLOOP_COMMIT", "abc")
    path = tmp_path / "attention_gpu.json"
    ran = []

    def first(case, gpu, options):
        ran.append(case.key)
        if case == FULL:
            return failed_row(case)
        return None if case.variant == "softcap" else made_row(case)

    assert on(2, path, first) == 1
    assert sorted(ran) == ["causal-64", "full-128", "softcap-128"]
    assert names(partial_path(path)) == ["causal-64", "full-128"]
    assert not path.exists()
    assert "1 of 3 rows" in capsys.readouterr().out
    ran.clear()

    def second(case, gpu, options):
        ran.append(case.key)
        return made_row(case)

    assert on(1, path, second) == 0
    assert sorted(ran) == ["full-128", "softcap-128"]  # the failed and the cut one
    assert names(partial_path(path)) == ["causal-64", "full-128", "softcap-128"]
    ran.clear()
    assert on(1, path, second) == 0
    assert ran == []


@pytest.mark.usefixtures("fresh_commit")
def test_rows_of_another_commit_are_measured_anew_and_the_published_file_stays(
    tmp_path, monkeypatch
):
    path = tmp_path / "attention_gpu.json"
    path.write_text(json.dumps(results_of([made_row(CAUSAL)], commit="old")))
    monkeypatch.setenv("HOTLOOP_COMMIT", "new")
    ran = []

    def row(case, gpu, options):
        ran.append(case.key)
        return made_row(case)

    assert on(1, path, row) == 0
    assert len(ran) == 3
    assert json.loads(path.read_text())["commit"] == "old"
    assert json.loads(partial_path(path).read_text())["commit"] == "new"
    assert on(1, path, row, "--publish") == 0
    assert json.loads(path.read_text())["commit"] == "new"
    assert not partial_path(path).exists()


@pytest.mark.usefixtures("fresh_commit")
def test_rows_of_another_machine_are_taken_if_they_are_of_this_commit(tmp_path, monkeypatch):
    monkeypatch.setenv("HOTLOOP_COMMIT", "abc")
    ours, theirs = tmp_path / "attention_gpu.json", tmp_path / "theirs.json"
    theirs.write_text(json.dumps(results_of([made_row(FULL)])))
    ran = []

    def row(case, gpu, options):
        ran.append(case.key)
        return made_row(case)

    assert on(1, ours, row, "--take", str(theirs)) == 0
    assert sorted(ran) == ["causal-64", "softcap-128"]
    assert names(partial_path(ours)) == ["causal-64", "full-128", "softcap-128"]


@pytest.mark.usefixtures("fresh_commit")
def test_no_row_is_begun_that_would_not_end_in_time(tmp_path, monkeypatch):
    monkeypatch.setenv("HOTLOOP_COMMIT", "abc")
    path = tmp_path / "attention_gpu.json"
    assert on(1, path, lambda *a: pytest.fail("begun"), "--seconds", "60") == 1
    assert names(partial_path(path)) == []


@pytest.mark.usefixtures("fresh_commit")
def test_a_slice_runs_its_rows_and_no_others(tmp_path, monkeypatch):
    monkeypatch.setenv("HOTLOOP_COMMIT", "abc")
    path = tmp_path / "attention_gpu.json"
    ran = []

    def row(case, gpu, options):
        ran.append(case)
        return made_row(case)

    cut = slices(CASES, 1, known_seconds())
    for number in (1, 2):  # the second times kernels that the first one finds
        ran.clear()
        args = _parse(["--slice", str(number), "--runs", str(tmp_path)])
        assert Benchmark(args, ["0"], path, machine(row)).run(CASES, []) == 0
        assert set(ran) == set(chosen_slice(cut, number))
    asked = _parse(["--slice", "1", "--budget", "2m", "--runs", str(tmp_path)])
    ran.clear()
    assert Benchmark(asked, ["0"], tmp_path / "two.json", machine(row)).run(CASES, []) == 0
    assert set(ran) == set(chosen_slice(slices(CASES, 1, {}, asked="2m"), 1))
    assert len(ran) < len(chosen_slice(cut, 1))
    for number in (0, len(cut) + 1):
        with pytest.raises(ValueError, match=f"expected 1 to {len(cut)}, got {number}"):
            chosen_slice(cut, number)


@pytest.mark.usefixtures("fresh_commit")
def test_the_last_row_publishes_the_file(tmp_path, monkeypatch):
    monkeypatch.setenv("HOTLOOP_COMMIT", "abc")
    path = tmp_path / "attention_gpu.json"
    there = [case for case in CASES if case.path.is_file()]

    def go(run_row):
        args = _parse(["--runs", str(tmp_path / "runs")])
        return Benchmark(args, ["0"], path, machine(run_row)).run(there, [])

    def cut(case, gpu, options):
        return made_row(case) | ({"status": "NO_FINAL"} if case == FULL else {})

    assert go(cut) == 1
    assert not path.exists()
    assert go(lambda case, gpu, options: made_row(case)) == 0
    assert len(names(path)) == len(there)
    assert not partial_path(path).exists()


def test_a_summary_is_written_anew_from_the_same_rows(tmp_path, capsys):
    path = tmp_path / "results.json"
    path.write_text(json.dumps(results_of([made_row(FULL)], commit="old")))
    assert main(["--summarise", str(path)]) == 0
    record = json.loads(path.read_text())
    assert record["commit"] == "old"
    assert record["summary"]["targets"]
    assert "missed no reason is given" in capsys.readouterr().out


DOCUMENT, PACKED = Case("document", 128), Case("document", 128, packing=11)


def packed_rows(path, base, *argv):
    """Return what each row was given to time, and the rows, where the base becomes `base`."""
    given = {}

    def row(case, gpu, options):
        given[case.key] = options.kernel
        return base if case == DOCUMENT else made_row(case)

    args = _parse([*argv, "--runs", str(path.parent / "runs")])
    Benchmark(args, ["0", "1"], path, machine(row)).run([PACKED, DOCUMENT], [])
    found = json.loads(partial_path(path).read_text())["rows"]
    return given, {row["row"]: row for row in found}


@pytest.mark.usefixtures("fresh_commit")
def test_a_packing_times_the_kernel_of_the_files_own_packing(tmp_path, monkeypatch):
    monkeypatch.setenv("HOTLOOP_COMMIT", "abc")
    base = made_row(DOCUMENT, kernel_source="x = 1", schedule={"tiles": "lists"})
    given, rows = packed_rows(tmp_path / "attention_gpu.json", base)
    assert given == {"document-128": None, "document-128-p11": "x = 1"}
    assert rows["document-128-p11"]["kernel_of"] == "document-128"
    assert rows["document-128-p11"]["schedule"] == {"tiles": "lists"}
    assert "kernel_of" not in rows["document-128"]


@pytest.mark.usefixtures("fresh_commit")
def test_a_packing_of_a_problem_without_a_kernel_searches_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("HOTLOOP_COMMIT", "abc")
    wrong = made_row(DOCUMENT, status="INCORRECT_NUMERICAL", performance=None)
    given, rows = packed_rows(tmp_path / "attention_gpu.json", wrong)
    assert given == {"document-128": None, "document-128-p11": None}
    assert "kernel_of" not in rows["document-128-p11"]


@pytest.mark.usefixtures("fresh_commit")
def test_a_packing_waits_for_a_base_that_failed_to_run_and_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOTLOOP_COMMIT", "abc")
    given, _ = packed_rows(tmp_path / "attention_gpu.json", failed_row(DOCUMENT))
    assert given == {"document-128": None}
    assert "document-128-p11: waits for document-128, whose kernel it times" in (
        capsys.readouterr().out
    )
