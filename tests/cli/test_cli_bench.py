"""`hotloop bench`: rounds by files, what it says, exit codes, and one line for bad input."""

import json
from dataclasses import replace

import pytest

from hotloop.cli.bench import runs_per_seat
from hotloop.cli.main import main
from hotloop.core.verdict import Status, Tier
from hotloop.llm.recording import Recording, write_recording
from hotloop.problems import list_kernelbench
from hotloop.store.reader import RunReader
from hotloop.suite.planning import plan_suite
from hotloop.testing.fakes import FakeVerifier, fake_verdict
from hotloop.verify.bundle import JudgeError, Verdicts, read_bundle, write_verdicts
from hotloop.verify.ssh import parse_judge

PROBLEM = """\
import torch

N = {n}


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.rand(N, 8)]


def get_init_inputs():
    return []
"""
REPLY = """```python
import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr + i, tl.maximum(x, 0.0), mask=i < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
        return y
```
"""
WORDS = ("--judge", "bundle", "--device", "cpu", "--no-wait", "--max-calls", "1")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A data set of two levels, and a folder to work in."""
    for level, number in ((1, 1), (1, 2), (2, 7)):
        folder = tmp_path / "data" / f"level{level}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}_Relu.py").write_text(PROBLEM.format(n=10 * level + number))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOTLOOP_KERNELBENCH", str(tmp_path / "data"))
    return tmp_path


def bench(*words, model="dir:answers"):
    options = ("--model", model, "--strategy", "sample", *WORDS, "--out", "s")
    return main(["bench", "kernelbench", *options, *map(str, words)])


def table(capsys):
    """The record of the last `--json` call, by problem."""
    record = json.loads(capsys.readouterr().out)
    return record, {row["problem"]: row for row in record["problems"]}


def judge(place, *, broken=(), wrong=(), suite="s"):
    """Answer a bundle of the suite: what a judge elsewhere would say."""
    assert main(["bundle", suite, "--out", "b"]) == 0
    bundle = read_bundle(place / "b")
    names = {p.id: p.name for p in bundle.problems.values()}
    infos, verdicts, errors = {}, [], []
    for item in bundle.items:
        if names[item.problem_id] in broken:
            errors.append(
                JudgeError(
                    problem_id=item.problem_id,
                    candidate_id=None,
                    error="ProblemError",
                    message="the reference does not fit on the device",
                )  # fmt: skip
            )
        elif item.candidate is None:
            problem = bundle.problems[item.problem_id]
            infos[problem.id] = FakeVerifier(device="cpu").load(problem)
        else:
            is_wrong = names[item.problem_id] in wrong
            outcome = Status.INCORRECT_NUMERICAL if is_wrong else 1.0
            found = fake_verdict(outcome, item.candidate.id, tier=Tier.FAST, device="cpu")
            verdicts.append(replace(found, problem_id=item.problem_id))
    write_verdicts(
        place / "v", Verdicts(infos=infos, verdicts=tuple(verdicts), errors=tuple(errors))
    )
    return len(bundle.items)


def answer(place):
    """Answer every prompt that has no answer yet."""
    prompts = [
        p for p in (place / "answers").glob("*.prompt.md")
        if not p.with_name(p.name.replace(".prompt.", ".reply.")).exists()
    ]  # fmt: skip
    for prompt in prompts:
        prompt.with_name(prompt.name.replace(".prompt.", ".reply.")).write_text(REPLY)
    return len(prompts)


def test_rounds_by_files_from_nothing_to_the_end(place, capsys):
    assert bench("--json") == 4
    _, rows = table(capsys)
    assert [r["state"] for r in rows.values()] == ["waiting for verdict"] * 3
    assert judge(place) == 3, "all problems of both levels are in one bundle"
    assert bench("--verdicts", "v") == 4
    assert answer(place) == 3, "all prompts were written in one round"
    assert "waiting for reply" in capsys.readouterr().out
    assert bench() == 4
    assert judge(place, wrong={"kernelbench/2/7"}) == 3
    capsys.readouterr()
    assert bench("--verdicts", "v", "--json") == 0
    record, rows = table(capsys)
    assert [r["state"] for r in rows.values()] == ["done"] * 3
    assert [r["status"] for r in rows.values()] == ["PASSED", "PASSED", "INCORRECT_NUMERICAL"]
    assert [r["calls"] for r in rows.values()] == [1, 1, 1]
    assert record["levels"]["1"]["passed"] == 2
    assert (record["levels"]["2"]["problems"], record["levels"]["2"]["passed"]) == (1, 0)
    assert (place / "s" / "runs" / "1-1" / "best" / "kernel.py").is_file()


def events(place):
    found = {}
    for folder in sorted((place / "s" / "runs").iterdir()):
        with RunReader(folder) as reader:
            found[folder.name] = len(reader.events())
    return found


def test_what_is_done_is_left_alone_and_shown_again(place, capsys):
    bench()
    judge(place)
    bench("--verdicts", "v")
    answer(place)
    bench()
    judge(place)
    assert bench("--verdicts", "v") == 0
    before = events(place)
    capsys.readouterr()
    assert bench("--json") == 0
    assert [r["state"] for r in table(capsys)[1].values()] == ["done"] * 3
    assert events(place) == before


def test_a_problem_that_cannot_be_loaded_is_named_and_the_others_go_on(place, capsys):
    bench()
    judge(place, broken={"kernelbench/1/2"})
    capsys.readouterr()
    assert bench("--verdicts", "v", "--json") == 4
    _, rows = table(capsys)
    assert [r["state"] for r in rows.values()] == [
        "waiting for reply", "skipped", "waiting for reply",
    ]  # fmt: skip
    assert "does not fit on the device" in rows["kernelbench/1/2"]["reason"]
    assert answer(place) == 2


def test_a_file_that_does_not_parse_is_skipped_in_the_table(place, capsys):
    (place / "data" / "level1" / "2_Relu.py").write_text("class Model(")
    assert bench() == 4
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("kernelbench/1/2  skipped: ConfigError") for line in lines)
    assert any(line.startswith("level 1: 2 problem(s)") and "1 skipped" in line for line in lines)


def test_verdicts_of_another_suite_are_said_to_hold_nothing(place, capsys):
    bench()
    write_verdicts(place / "v", Verdicts())
    capsys.readouterr()
    assert bench("--verdicts", "v") == 4
    assert "holds nothing for the problems of this suite" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--levels", "4"), "no level 4"),
        (("--problems", "9"), "no problem 9"),
        (("--data", "nowhere"), "nowhere"),
        (("--gpus", "2"), "--gpus"),
        (("--verdicts", "nothing"), "nothing"),
        (("--set", "M=3"), "no constant M"),
        (("--budget", "soon"), "budget"),
        (("--model", "dir"), "dir"),
        (("--seed", "5"), "seed 0, now it is 5"),
        (("--problems", "1/1"), "kernelbench/1/2"),
        (("--out", "s/runs/1-1"), "single run"),
        (("--out", "data"), "no suite"),
    ],
)
def test_bad_input_is_one_line_and_starts_nothing(place, capsys, words, why):
    assert bench() == 4
    before = events(place), sorted(p.name for p in place.iterdir())
    capsys.readouterr()
    assert bench(*words) == 2
    err = capsys.readouterr().err.splitlines()
    assert len(err) == 1
    assert why in err[0]
    assert (events(place), sorted(p.name for p in place.iterdir())) == before


def test_a_folder_of_answers_that_cannot_be_made_skips_no_problem(place, capsys):
    assert bench(model="dir:/proc/answers") == 2
    assert capsys.readouterr().err.startswith("hotloop: dir:/proc/answers: expected a folder that")
    assert sorted(p.name for p in place.iterdir()) == ["data"]


def test_without_a_data_set_or_with_an_unknown_suite_nothing_is_made(place, capsys, monkeypatch):
    monkeypatch.delenv("HOTLOOP_KERNELBENCH")
    assert main(["bench", "kernelbench"]) == 2
    assert "--data PATH" in capsys.readouterr().err
    assert main(["bench", "other"]) == 2
    assert "expected the suite kernelbench" in capsys.readouterr().err
    assert sorted(p.name for p in place.iterdir()) == ["data"]


def test_a_problem_that_a_recording_lacks_is_skipped_before_anything_starts(place, capsys):
    bench()
    with RunReader(place / "s" / "runs" / "1-1") as reader:
        problems = {reader.problem().id: "kernelbench/1/1"}
    write_recording(place / "r.jsonl", Recording(model="some-model", problems=problems, calls=()))
    capsys.readouterr()
    words = ("--problems", "1-2", "--levels", "1", "--out", "r", "--json")
    assert bench(*words, model="replay:r.jsonl") == 4
    _, rows = table(capsys)
    assert rows["kernelbench/1/1"]["state"] == "waiting for verdict"
    assert rows["kernelbench/1/2"]["state"] == "skipped"
    assert "is a recording of kernelbench/1/1" in rows["kernelbench/1/2"]["reason"]
    assert [p.name for p in (place / "r" / "runs").iterdir()] == ["1-1"]
    assert bench("--levels", "2", "--out", "none", model="replay:r.jsonl") == 2
    assert not (place / "none").exists(), "nothing can be run: that is the user's mistake"


@pytest.mark.slow
def test_a_real_judge_and_a_reference_that_raises(place, capsys):
    broken = PROBLEM.format(n=3).replace("torch.relu(x)", "x @ torch.rand(2, 3)")
    (place / "data" / "level1" / "2_Relu.py").write_text(broken)
    words = ("bench", "kernelbench", "--levels", "1", "--device", "cpu", "--max-candidates", "1")
    for _ in range(2):
        assert main([*words, "--out", "real", "--json"]) == 0
        record, rows = table(capsys)
        assert (rows["kernelbench/1/1"]["state"], rows["kernelbench/1/1"]["passed"]) == (
            "done", True,
        )  # fmt: skip
        assert rows["kernelbench/1/2"]["state"] == "skipped"
        assert rows["kernelbench/1/2"]["reason"].startswith("ProblemError: ")
    assert record["levels"]["1"]["passed"] == 1


def test_runs_at_a_time_need_a_judge_here(place, capsys):
    assert bench("--runs-per-gpu", "2") == 2
    assert "--runs-per-gpu: no kernel is judged here" in capsys.readouterr().err
    assert not (place / "s").exists() or not (place / "s" / "suite.json").exists()


@pytest.mark.parametrize(
    ("model", "device", "given", "expected"),
    [
        ("builtin", "cuda", None, 1), ("dir:answers", "cuda", None, 3),
        ("dir:answers", "cpu", None, 1), ("dir:answers", "cpu", 2, 2), ("builtin", "cuda", 4, 4),
    ],
)  # fmt: skip
def test_more_runs_than_one_by_default_where_a_gpu_would_wait_for_models(
    place, model, device, given, expected
):
    options = {"judge": "bundle", "device": device, "model": model, "data": place / "data"}
    plan = plan_suite(list_kernelbench(place / "data"), place / "s", options)
    here = parse_judge("local")
    jobs = [replace(job, plan=replace(job.plan, judge=here)) for job in plan.jobs]
    assert runs_per_seat(replace(plan, jobs=tuple(jobs)), given) == expected


def test_the_record_says_what_was_shared(place, capsys):
    assert bench("--json", "--shared-budget") == 4
    record, _ = table(capsys)
    assert record["granted_s"] == {}
    assert record["use"]["seats"] == {}
