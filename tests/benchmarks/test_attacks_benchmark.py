"""The benchmark of attacks: which programs there are, what is a right answer, what it counts."""

from __future__ import annotations

import dataclasses

import pytest
from benchmarks.attack_programs import REFUSALS, Program, chosen, programs
from benchmarks.attack_summary import is_right, outcome, row_of, summarise, table
from benchmarks.attacks import JOB, AttackJudge, AttackRun, both_tiers, jobs_of, main

from hotloop.core.verdict import Status, Tier
from hotloop.testing.fakes import FakeVerifier


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> list[Program]:
    return programs(tmp_path_factory.mktemp("problem"))


def named(corpus: list[Program], key: str) -> Program:
    return next(program for program in corpus if program.key == key)


def row(program: Program, status: str | None, **fields: object) -> dict[str, object]:
    ok = status is not None and is_right(program, Status(status), "cpu")
    more = {"status": status, "stage": "correctness", "tier": "fast", "ok": ok, **fields}
    return row_of(program, "cpu") | more


def test_all_corpora_are_there(corpus: list[Program]) -> None:
    attacks = [program for program in corpus if program.is_attack]
    assert len(attacks) >= 250
    assert {program.corpus for program in attacks} == {"own", "blind", "gpu"}
    honest = [program for program in corpus if program.corpus == "honest"]
    assert len(honest) >= 40
    assert all(program.right == ("PASSED",) for program in honest)
    settled = [program for program in corpus if not program.is_attack and program not in honest]
    assert settled
    assert all(program.settled for program in settled)


def test_what_could_take_a_machine_down_is_judged_by_its_text(corpus: list[Program]) -> None:
    managed = named(corpus, "gpu/managed memory")
    assert managed.by_text
    assert named(corpus, "own/l2-carved-out").by_text
    judge = AttackJudge("cpu", gpu=None, log=managed.problem.parent / "judge.log")
    assert judge.row(managed)["ok"]
    honest = named(corpus, "honest/plain-rows").candidate
    missed = judge.row(dataclasses.replace(managed, candidate=honest))
    assert not missed["ok"]
    assert missed["status"] == "PASSED"
    assert "not run" in missed["message"]
    assert judge.environment == {}, "no judge was started for either"
    judge.close()


def test_programs_are_chosen_by_name_corpus_problem_or_number(corpus: list[Program]) -> None:
    assert [p.key for p in chosen(corpus, "recycled-memory", None)] == ["own/recycled-memory"]
    assert {p.corpus for p in chosen(corpus, "blind,gpu", None)} == {"blind", "gpu"}
    assert all(26 in p.numbers for p in chosen(corpus, "26", None))
    assert chosen(corpus, "", None) == corpus
    few = chosen(corpus, "", 15)
    assert len(few) == 15
    assert len({p.problem for p in few}) > 5
    for names, limit in (("no-such-program", None), ("", 0)):
        with pytest.raises(ValueError, match="expected"):
            chosen(corpus, names, limit)


def test_jobs_hold_one_problem_and_one_deadline(corpus: list[Program]) -> None:
    jobs = jobs_of(corpus)
    assert sum(len(job) for job in jobs) == len(corpus)
    for job in jobs:
        assert len({(p.problem, p.call_s) for p in job}) == 1
        assert len(job) <= JOB


def test_a_right_answer_on_each_device(corpus: list[Program]) -> None:
    numpy = named(corpus, "own/numpy-into-the-buffer-of-a-kernel")
    assert is_right(numpy, Status(numpy.right[0]), "cpu")
    other = next(Status(s) for s in REFUSALS if s not in numpy.right)
    assert not is_right(numpy, other, "cpu")
    assert is_right(numpy, other, "cuda")
    for device in ("cpu", "cuda"):
        assert not is_right(numpy, Status.PASSED, device)
        assert not is_right(numpy, Status.INCONCLUSIVE, device)
    honest = named(corpus, "honest/plain-rows")
    assert is_right(honest, Status.PASSED, "cuda")
    assert not is_right(honest, Status.REWARD_HACK, "cuda")


def test_time_that_is_burnt_has_to_be_reported(corpus: list[Program]) -> None:
    burns = named(corpus, "gpu/burns")
    assert burns.least_ms is not None
    assert is_right(burns, Status.PASSED, "cuda", latency_ms=burns.least_ms * 2)
    assert not is_right(burns, Status.PASSED, "cuda", latency_ms=burns.least_ms / 2)
    assert not is_right(burns, Status.PASSED, "cuda")


def test_the_summary_names_who_passed_and_who_was_not_judged(corpus: list[Program]) -> None:
    zeros, cached = named(corpus, "own/zeros"), named(corpus, "own/cache-by-pointer")
    honest = named(corpus, "honest/plain-rows")
    settled = named(corpus, "blind/seed_table_at_import")
    good = [row(zeros, "INCORRECT_NUMERICAL"), row(honest, "PASSED"), row(settled, "PASSED")]
    found = summarise(good, device="cpu", left_out=["gpu/burns"])
    assert (found["attacks"], found["attacks_refused"], found["honest_passed"]) == (1, 1, 1)
    assert found["attacks_passed"] == found["without_a_result"] == found["honest_refused"] == []
    assert found["settled"] == {settled.key: "PASSED"}
    assert found["needs_a_gpu"] == ["gpu/burns"]
    assert found["catalogue_numbers_refused"] == list(zeros.numbers)

    bad = [
        row(zeros, "PASSED"), row(cached, "TIMEOUT"), row(honest, "REWARD_HACK"),
        row(named(corpus, "own/weights-scaled"), None, error="WorkerDied: gone"),
    ]  # fmt: skip
    found = summarise(bad, device="cpu", left_out=[])
    assert (found["attacks"], found["attacks_refused"]) == (3, 0)
    assert found["attacks_passed"] == [zeros.key]
    assert found["attacks_refused_with_another_status"] == [cached.key]
    assert found["honest_refused"] == [honest.key]
    assert found["without_a_result"] == ["own/weights-scaled"]
    text = table(bad, found)
    assert "own/zeros: expected INCORRECT_NUMERICAL, got PASSED" in text
    assert "0 of 3 attacks refused" in text


def test_who_only_the_final_tier_refused_is_named(corpus: list[Program]) -> None:
    zeros = named(corpus, "own/zeros")
    rows = [row(zeros, "INCORRECT_NUMERICAL", tier="final", fast_status="PASSED")]
    found = summarise(rows, device="cuda", left_out=[])
    assert found["refused_at_the_final_tier_only"] == [zeros.key]
    assert outcome(rows[0]) == "INCORRECT_NUMERICAL"


@pytest.mark.parametrize(
    ("device", "at_final", "tiers", "status", "ok"),
    [
        ("cuda", Status.INCORRECT_NUMERICAL, ["fast", "final"], "INCORRECT_NUMERICAL", True),
        ("cuda", 1.0, ["fast", "final"], "PASSED", False),
        ("cpu", Status.INCORRECT_NUMERICAL, ["fast"], "PASSED", False),
    ],
)
def test_an_attack_that_passed_is_judged_again_where_there_is_a_final_tier(
    corpus: list[Program], device: str, at_final: Status | float, tiers: list[str], status: str,
    ok: bool,
) -> None:  # fmt: skip
    verifier = FakeVerifier(behaviour=lambda _, tier: 1.0 if tier is Tier.FAST else at_final)
    found = both_tiers(named(corpus, "own/zeros"), verifier, device)
    assert [call for call, _ in verifier.calls] == tiers
    assert (found["status"], found["ok"]) == (status, ok)
    assert found.get("fast_status") == ("PASSED" if device == "cuda" else None)


def test_who_is_right_at_the_fast_tier_is_judged_once(corpus: list[Program]) -> None:
    for key, answer in (("own/zeros", Status.INCORRECT_NUMERICAL), ("honest/plain-rows", 1.0)):
        verifier = FakeVerifier(behaviour=lambda _, tier, answer=answer: answer)
        assert both_tiers(named(corpus, key), verifier, "cuda")["ok"]
        assert [call for call, _ in verifier.calls] == ["fast"]


def test_a_benchmark_that_was_cut_goes_on(corpus: list[Program], tmp_path) -> None:
    first, second = corpus[:2]
    path = tmp_path / "attacks.json"
    cut = AttackRun("cpu", tmp_path / "logs", path, [])
    assert cut.run([first, second], [""], seconds=-1.0) == []
    for program in (first, second):
        cut._rows[program.key] = row(program, "PASSED", error=None)
    cut._rows[second.key]["candidate_id"] = "an older text"
    cut._write()
    again = AttackRun("cpu", tmp_path / "logs", path, [])
    rows = again.run([first, second], [""], seconds=-1.0)
    assert [found["key"] for found in rows] == [first.key]


def test_an_unknown_name_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--device", "cpu", "--only", "nothing-of-the-kind"]) == 2
    assert capsys.readouterr().err.startswith("attacks: expected names of programs")


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_cheat_and_an_honest_kernel_are_judged(tmp_path, capsys) -> None:
    names = "zeros,plain-rows,numpy_softmax,call_counter_then_stale"
    options = ["--device", "cpu", "--only", names, "--out", str(tmp_path / "attacks_cpu.json")]
    assert main([*options, "--logs", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "2 of 2 attacks refused, 1 of 1 honest kernels passed" in said
    assert "1 need a GPU" in said
    assert '"torch"' in (tmp_path / "attacks_cpu.json").read_text(encoding="utf-8")
