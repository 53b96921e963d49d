"""`hotloop bench --start SUITE`: an earlier suite's kernels under another precision, by files."""

from dataclasses import replace

import pytest
from test_cli_bench import answer, bench, judge, place, table

from hotloop.cli.main import main
from hotloop.core.verdict import Tier
from hotloop.store.reader import RunReader
from hotloop.testing.fakes import FakeVerifier, fake_verdict
from hotloop.verify.bundle import Verdicts, read_bundle, write_verdicts

__all__ = ["place"]  # the fixture
ON = ("--judge", "bundle", "--device", "cpu", "--no-wait", "--out", "t", "--precision", "strict")


def first_suite(place):
    """Write, answer and judge a suite; the kernel of 2/7 is wrong."""
    bench()
    judge(place)
    bench("--verdicts", "v")
    answer(place)
    bench()
    judge(place, wrong={"kernelbench/2/7"})
    bench("--verdicts", "v")


def start(*words):
    return main(["bench", "kernelbench", "--start", "s", *ON, *words])


@pytest.mark.slow
def test_kernels_are_verified_under_another_precision_and_nobody_is_asked(place, capsys):
    first_suite(place)
    prompts = sorted((place / "answers").iterdir())
    capsys.readouterr()
    assert start("--start-only") == 4
    assert judge(place, suite="t") == 2
    assert start("--start-only", "--verdicts", "v") == 4
    assert judge(place, suite="t", wrong={"kernelbench/1/2"}) == 2
    capsys.readouterr()
    assert start("--start-only", "--verdicts", "v", "--json") == 0
    record, rows = table(capsys)
    assert [r["state"] for r in rows.values()] == ["done", "done", "skipped"]
    assert [r["status"] for r in rows.values()] == ["PASSED", "INCORRECT_NUMERICAL", None]
    assert "no verified kernel of kernelbench/2/7" in rows["kernelbench/2/7"]["reason"]
    assert [(r["calls"], r["attempts"]) for r in rows.values()] == [(0, 1), (0, 1), (0, 0)]
    assert list(record["figures"]["columns"]) == ["model/strict/cpu"], "also what was not run"
    assert sorted((place / "answers").iterdir()) == prompts, "no prompt was written"
    with RunReader(place / "t" / "runs" / "1-1") as reader:
        assert reader.problem().policy.precision == "strict"


@pytest.mark.slow
def test_the_search_goes_on_from_there(place, capsys):
    first_suite(place)
    start("--start-only")
    judge(place, suite="t")
    start("--start-only", "--verdicts", "v")
    judge(place, suite="t")
    start("--start-only", "--verdicts", "v")
    capsys.readouterr()
    assert start("--model", "dir:answers", "--max-calls", "1") == 4
    said = capsys.readouterr()
    assert "1 problem(s) begin from nothing: 2/7" in said.err
    assert "waiting for reply" in said.out, "the model is asked for a better one"


def test_another_precision_does_not_go_on_with_a_suite(place, capsys):
    assert bench() == 4
    capsys.readouterr()
    assert bench("--precision", "tf32") == 2
    error = capsys.readouterr().err
    assert "was started with precision 'as_shipped', now it is 'tf32'" in error
    assert len(error.strip().splitlines()) == 1


def test_a_folder_that_is_no_suite_is_one_line(place, capsys):
    (place / "s").mkdir()
    assert start("--start-only") == 2
    error = capsys.readouterr().err
    assert "--start: expected a kernel's file or the folder of a suite" in error
    assert len(error.strip().splitlines()) == 1


def test_what_is_not_there_is_one_line(place, capsys):
    assert main(["bench", "kernelbench", "--start", "nowhere", *ON]) == 2
    error = capsys.readouterr().err
    assert "--start nowhere: expected a kernel's file or the folder of a suite" in error
    assert len(error.strip().splitlines()) == 1


def test_a_damaged_journal_there_is_one_line(place, capsys):
    bench()
    (place / "s" / "runs" / "1-2" / "journal.sqlite").write_bytes(b"no database" * 1000)
    capsys.readouterr()
    assert start("--start-only") == 3
    error = capsys.readouterr().err
    assert "1-2: the journal is damaged" in error
    assert len(error.strip().splitlines()) == 1
    assert not (place / "t").exists(), "nothing was begun without its kernel"


def test_a_suite_without_a_kernel_is_one_line(place, capsys):
    bench()
    capsys.readouterr()
    assert start("--start-only") == 2
    error = capsys.readouterr().err
    assert "--start s: expected verified kernels of 3 problem(s), the suite has none" in error
    assert len(error.strip().splitlines()) == 1


def judge_on_gpu(place):
    """Answer a bundle of the suite `t` as a judge with a GPU would; return the tiers asked for."""
    assert main(["bundle", "t", "--out", "b"]) == 0
    bundle, infos, verdicts = read_bundle(place / "b"), {}, []
    for item in bundle.items:
        if item.candidate is None:
            problem = bundle.problems[item.problem_id]
            infos[problem.id] = FakeVerifier(device="cuda").load(problem)
            continue
        found = fake_verdict(1.0, item.candidate.id, tier=item.tier, device="cuda")
        verdicts.append(replace(found, problem_id=item.problem_id, short=item.tier is Tier.FINAL))
    write_verdicts(place / "v", Verdicts(infos=infos, verdicts=tuple(verdicts), errors=()))
    return [item.tier for item in bundle.items if item.candidate is not None]


def test_a_start_goes_to_the_final_tier_and_nothing_else_does(place, capsys):
    first_suite(place)
    words = [word if word != "cpu" else "cuda" for word in ON]

    def begin(*more):
        return main(["bench", "kernelbench", "--start", "s", "--start-only", *words, *more])

    capsys.readouterr()
    assert begin() == 4
    said = capsys.readouterr().err
    assert "precision: strict, by --precision" in said
    assert "start: 2 verified kernel(s) of s" in said
    assert "generator: dir:answers wrote the kernels; nobody is asked now" in said
    assert "writes" not in said
    assert "without a kernel there: 1 problem(s) are left out: 2/7" in said
    assert judge_on_gpu(place) == []
    assert begin("--verdicts", "v") == 4
    assert judge_on_gpu(place) == [Tier.FAST] * 2
    assert begin("--verdicts", "v") == 4
    assert judge_on_gpu(place) == [Tier.FINAL] * 2
    capsys.readouterr()
    assert begin("--verdicts", "v", "--json") == 0
    record, rows = table(capsys)
    assert [(r["state"], r["tier"]) for r in rows.values()] == [
        ("done", "final"), ("done", "final"), ("skipped", None)
    ]  # fmt: skip
    group = record["figures"]["columns"]["model/strict/cuda"]["together"]["all"]
    assert (group["problems"], group["correct"]) == (3, 2), "the one without a kernel counts"
