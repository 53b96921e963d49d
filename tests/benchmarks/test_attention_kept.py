"""Rows of earlier commands: those measured in the same way stand, others are refused."""

import json
from dataclasses import replace

import pytest
from attention_makers import DIGEST, ENVIRONMENT, FULL, failed_row, machine, made_row, results_of
from benchmarks.attention import _parse
from benchmarks.attention_cases import Case
from benchmarks.attention_kept import (
    TRIES,
    Wanted,
    kept_rows,
    partial_path,
    stands,
    this_environment,
)
from benchmarks.attention_session import Benchmark

from benchmarks import results_file

CAUSAL = Case("causal", 64)
WANTED = Wanted(commit="abc", digest=DIGEST, budget=None, environment=lambda: ENVIRONMENT)


@pytest.fixture(autouse=True)
def known_commit(monkeypatch):
    monkeypatch.setenv("HOTLOOP_COMMIT", "abc")
    results_file.commit.cache_clear()
    yield
    results_file.commit.cache_clear()


def file_of(tmp_path, *rows, name="theirs.json", **changes):
    path = tmp_path / name
    path.write_text(json.dumps(results_of(list(rows), **changes)))
    return path


def benchmark(tmp_path, run_row, *argv, **changes):
    args = _parse([*argv, "--runs", str(tmp_path / "runs")])
    return Benchmark(args, ["0"], tmp_path / "ours.json", machine(run_row, **changes))


def test_rows_that_were_measured_in_the_same_way_are_kept(tmp_path):
    path = file_of(tmp_path, made_row(FULL), failed_row(CAUSAL))
    assert list(kept_rows([path, tmp_path / "none.json"], WANTED)) == ["full-128"]
    assert kept_rows([path], replace(WANTED, commit="abd")) == {}


@pytest.mark.parametrize("name", ["gpu", "driver", "torch", "triton"])
def test_rows_of_another_environment_are_refused(tmp_path, name):
    row = made_row(FULL, environment=ENVIRONMENT | {name: "another"})
    with pytest.raises(ValueError, match=f"full-128 was measured with {name} another, this"):
        kept_rows([file_of(tmp_path, row)], WANTED)


def test_what_an_environment_says_beside_that_does_not_matter(tmp_path):
    row = made_row(FULL, environment=ENVIRONMENT | {"isolation": "T0", "python": "3.13"})
    assert list(kept_rows([file_of(tmp_path, row)], WANTED)) == ["full-128"]


def test_rows_of_another_budget_are_refused_and_of_the_same_one_kept(tmp_path):
    path = file_of(tmp_path, made_row(FULL, budget="10s"))
    with pytest.raises(ValueError, match="budget 10s, this command measures with 45s"):
        kept_rows([path], WANTED)
    assert list(kept_rows([path], replace(WANTED, budget="10s"))) == ["full-128"]


def test_rows_of_other_sources_under_the_same_told_commit_are_refused(tmp_path):
    path = file_of(tmp_path, made_row(FULL, source_digest="ffffffff"))
    with pytest.raises(ValueError, match="sources ffffffff"):
        kept_rows([path], WANTED)


def test_the_machine_is_asked_only_where_there_are_rows_to_compare(tmp_path):
    asking = replace(WANTED, environment=lambda: pytest.fail("asked"))
    assert kept_rows([file_of(tmp_path, made_row(FULL), commit="old")], asking) == {}


def test_a_machine_without_a_gpu_says_so_in_one_line(monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    (tmp_path / "python").write_text("#!/bin/sh\necho no driver >&2; exit 1\n")
    (tmp_path / "python").chmod(0o755)
    this_environment.cache_clear()
    with pytest.raises(ValueError, match="torch with a GPU.*no driver"):
        this_environment()


def test_a_refused_file_stays_as_it_was(tmp_path):
    ours = file_of(tmp_path, made_row(FULL, budget="10s"), name="ours.partial.json")
    before = ours.read_bytes()
    with pytest.raises(ValueError, match="another --out"):
        benchmark(tmp_path, lambda *_: pytest.fail("begun"))
    assert ours.read_bytes() == before


@pytest.mark.parametrize("status", ["NO_KERNEL", "NO_FINAL"])
def test_a_row_of_a_cut_budget_is_tried_again_so_often_and_no_more(tmp_path, status):
    ran = []

    def cut(case, gpu, options):
        ran.append(case.key)
        return made_row(case, status=status, tier=None)

    for tries in range(1, TRIES + 2):
        done = benchmark(tmp_path, cut).run([FULL], [])
        assert done == (0 if tries >= TRIES else 1)
        assert len(ran) == min(tries, TRIES)
    rows = json.loads(partial_path(tmp_path / "ours.json").read_text())["rows"]
    assert [row["tries"] for row in rows] == [TRIES]


def test_a_verdict_is_not_tried_again():
    assert stands(made_row(FULL))
    assert stands(made_row(FULL, status="INCORRECT_NUMERICAL"))
    assert not stands(made_row(FULL, status="NO_FINAL"))
    assert not stands(failed_row(FULL))
    assert not stands(None)


def test_a_row_during_which_the_sources_changed_is_dropped(tmp_path, capsys):
    digests = iter([DIGEST, DIGEST, "changed0", "changed0"])
    ran = []

    def row(case, gpu, options):
        ran.append(case.key)
        return made_row(case)

    made = benchmark(tmp_path, row, digest=lambda: next(digests))
    assert made.run([FULL, CAUSAL], []) == 1
    assert ran == ["full-128"]
    assert json.loads(partial_path(tmp_path / "ours.json").read_text())["rows"] == []
    out = capsys.readouterr().out
    assert out.count("full-128: dropped: the sources changed meanwhile") == 1
    assert out.count("no row is begun any more") == 1


def test_rows_carry_their_budget_and_sources(tmp_path):
    made = benchmark(tmp_path, lambda case, gpu, options: made_row(case), "--budget", "20s")
    assert made.run([FULL], []) == 0
    (row,) = json.loads(partial_path(tmp_path / "ours.json").read_text())["rows"]
    assert (row["budget"], row["source_digest"], row["tries"]) == ("20s", DIGEST, 1)
