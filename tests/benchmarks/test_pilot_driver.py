"""The pilot's rounds on a made-up catalogue, with made-up replies and verdicts."""

import json
import shutil
from dataclasses import replace

import pytest
from benchmarks.model_pilot import main
from benchmarks.pilot_record import record
from benchmarks.pilot_runs import run_folder
from pilot_makers import failed, info, passed, run

from benchmarks import pilot_answers
from hotloop.core.audit import Audit
from hotloop.core.language import LANGUAGES
from hotloop.llm.recording import read_recording
from hotloop.verify.bundle import Verdicts, read_bundle, write_verdicts

MODEL = """
import torch
N = {n}
class Model(torch.nn.Module):
    def forward(self, x):
        return x + N
def get_inputs():
    return [torch.rand(8)]
def get_init_inputs():
    return []
"""
KERNEL = """
import torch, triton
import triton.language as tl
@triton.jit
def shift(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i) + {n})
class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        shift[(1,)](x, y, BLOCK=8)
        return y
"""


@pytest.fixture
def pilot(tmp_path):
    """Return a function that calls the driver on one drawn problem in all its arms."""
    lines = [
        json.dumps(
            {"level": level, "problem_id": n, "name": f"{n}_ReLU", "code": MODEL.format(n=n)}
        )
        for level in (1, 2)
        for n in range(1, 6)
    ]
    data = tmp_path / "kernelbench.jsonl"
    data.write_text("\n".join(lines), encoding="utf-8")

    def call(command, *options):
        words = ["--folder", str(tmp_path), "--data", str(data), "--only", "kernelbench-1-1."]
        return main([command, *words, *options])

    return call


def judged(path, out, ms=0.5, **facts):
    """Answer a bundle: every candidate passes, but for those that a comment says are wrong."""
    bundle = read_bundle(path)
    verdicts = []
    for item in bundle.items:
        if item.candidate is not None:
            wrong = "wrong" in item.candidate.text()
            made = failed(item.candidate.id) if wrong else passed(item.candidate.id, ms, item.tier)
            verdicts.append(replace(made, problem_id=item.problem_id))
    infos = {key: info(problem, **facts) for key, problem in bundle.problems.items()}
    write_verdicts(out, Verdicts(infos=infos, verdicts=tuple(verdicts)))
    return [item.tier for item in bundle.items]


def answer(folder, kernel):
    for prompt in folder.glob("batch-*/*.prompt.md"):
        reply = prompt.with_name(prompt.name.replace(".prompt.", ".reply."))
        reply.write_text(f"```python\n{kernel}\n```\n", encoding="utf-8")


def test_rounds_lead_to_a_report_and_a_recording(pilot, tmp_path, capsys):
    bundle, verdicts = tmp_path / "bundle", tmp_path / "verdicts"
    step = ("step", "--max-candidates", "2", "--who", "somebody")
    assert pilot(*step) == 0
    assert pilot("bundle", "--out", str(bundle)) == 0
    assert judged(bundle, verdicts) == [None]  # four arms and two languages, one problem
    assert pilot(*step, "--verdicts", str(verdicts)) == 0
    prompts = pilot_answers.unanswered(tmp_path / "answers")
    runs = sorted(path.name for path in tmp_path.glob("runs/*/*"))
    is_cuda = any(name.endswith(".cuda") for name in runs)
    assert len(runs) == 4 + is_cuda
    # The first drafts of all arms share one prompt; the sample arm asks for its second at once.
    assert len(prompts) == 2 + is_cuda

    answers = tmp_path / "answers"
    for number in range(12):
        if pilot_answers.unanswered(answers):
            assert pilot("prompts", "--batches", "3") == 0
            answer(tmp_path, KERNEL.format(n=f"1.{number}"))
            assert pilot("collect") == 0
        elif pilot("bundle", "--out", str(bundle)) == 0:
            judged(bundle, verdicts)
        else:
            break
        assert pilot(*step, "--verdicts", str(verdicts)) == 0
    else:
        pytest.fail("expected every run to end within 12 rounds")

    out = tmp_path / "pilot.json"
    assert pilot("report", "--out", str(out)) == 0
    record = json.loads(out.read_text(encoding="utf-8"))
    assert {row["status"] for row in record["rows"] if row["language"] == "triton"} == {"PASSED"}
    assert record["summary"]["triton"]["speedup"]["fastest"]["geometric_mean"] == 2.0
    assert record["environment"] == {"gpu": "an H200"}
    assert str(tmp_path) not in out.read_text(encoding="utf-8")
    recording = tmp_path / "recording.jsonl"
    assert pilot("record", "--out", str(recording)) == 0
    found = read_recording(recording)
    assert found.model == "somebody"
    assert [call.key.attempt for call in found.calls] == [1, 2]
    capsys.readouterr()


def test_a_pilot_whose_folder_is_gone_goes_on_from_its_recording(pilot, tmp_path, capsys):
    bundle, verdicts = tmp_path / "bundle", tmp_path / "verdicts"
    recording = tmp_path / "recording.jsonl"
    arm = ("--only", "main/kernelbench-1-1.triton")
    step = ("step", "--max-candidates", "2", *arm)
    for _ in range(3):
        assert pilot(*step) == 0
        if pilot("bundle", "--out", str(bundle), *arm) == 0:
            judged(bundle, verdicts)
            assert pilot(*step, "--verdicts", str(verdicts)) == 0
        if pilot_answers.unanswered(tmp_path / "answers"):
            assert pilot("prompts", "--batches", "1") == 0
            answer(tmp_path, KERNEL.format(n="1.0"))
            assert pilot("collect") == 0
    assert pilot("record", "--out", str(recording), *arm) == 0
    calls = read_recording(recording).calls
    assert calls, "a reply was collected"

    for name in ("runs", "answers"):
        shutil.rmtree(tmp_path / name)
    assert pilot("seed", "--recording", str(recording), *arm) == 0
    assert f"{len(calls)} calls" in capsys.readouterr().out
    assert pilot("seed", "--recording", str(recording), *arm) == 1  # it has begun
    assert pilot(*step, "--verdicts", str(verdicts)) == 0
    again = tmp_path / "again.jsonl"
    assert pilot("record", "--out", str(again), *arm) == 0
    assert read_recording(again).calls == calls
    assert [call.key.attempt for call in calls] == [1, 2]
    assert not pilot_answers.unanswered(tmp_path / "answers"), "an answered prompt is asked again"


def test_each_language_has_a_recording_of_its_own(pilot, tmp_path, capsys):
    bundle, verdicts = tmp_path / "bundle", tmp_path / "verdicts"
    arm = ("--only", "main/kernelbench-1-1.triton")
    assert pilot("step", *arm) == 0
    assert pilot("bundle", "--out", str(bundle), *arm) == 0
    judged(bundle, verdicts)
    assert pilot("step", "--verdicts", str(verdicts), *arm) == 0
    assert pilot("prompts", "--batches", "1") == 0
    answer(tmp_path, KERNEL.format(n="1.0"))
    assert pilot("collect") == 0
    assert pilot("step", "--verdicts", str(verdicts), *arm) == 0
    assert pilot("seed", "--recording", "none", "--language", "gluon", *arm) != 0

    begun = run()
    runs = [replace(begun, language=language) for language in LANGUAGES]
    for other in runs[1:]:
        shutil.copytree(run_folder(tmp_path, begun), run_folder(tmp_path, other))
    lines = record(tmp_path, runs, tmp_path / "calls.jsonl")
    names = [line.partition(":")[0].rpartition("/")[2] for line in lines]
    assert names == ["calls.jsonl", "calls_gluon.jsonl", "calls_cuda.jsonl"]
    assert all(read_recording(tmp_path / name).calls for name in names)
    capsys.readouterr()


def test_the_audit_of_a_load_is_not_made_again_at_the_next(pilot, tmp_path, capsys):
    bundle, verdicts = tmp_path / "bundle", tmp_path / "verdicts"
    arm = ("--only", "main/kernelbench-1-1.triton")
    assert pilot("step", *arm) == 0
    assert pilot("bundle", "--out", str(bundle), *arm) == 0
    assert read_bundle(bundle).audits == {}
    audit = Audit(key="k")
    judged(bundle, verdicts, audit=audit)
    assert pilot("step", "--verdicts", str(verdicts), *arm) == 0
    assert pilot("prompts", "--batches", "1") == 0
    answer(tmp_path, KERNEL.format(n="1.0"))
    assert pilot("collect") == 0
    assert pilot("step", *arm) == 0
    assert pilot("bundle", "--out", str(bundle), *arm) == 0
    found = read_bundle(bundle)
    assert found.audits == {item.problem_id: audit for item in found.items}
    assert len(found.items) == 1
    capsys.readouterr()


def test_a_run_that_fails_is_told_and_the_others_go_on(pilot, tmp_path, capsys):
    assert pilot("step") == 0
    journal = next(tmp_path.glob("runs/sample/*/journal.sqlite"))
    journal.write_bytes(b"no database")
    assert pilot("step") == 1
    told = capsys.readouterr().out
    assert "sample/kernelbench-1-1.triton: " in told
    assert "Traceback" not in told


def test_prompts_of_one_problem_go_to_different_batches(tmp_path):
    answers = tmp_path / "answers"
    answers.mkdir()
    for problem in "xyz":
        for n in (1, 2):
            (answers / f"{problem}-a000{n}-s0-12345678.prompt.md").write_text("ask" * n)
    batches = pilot_answers.hand_out(tmp_path, 2)
    assert [dict(batch.problems) for batch in batches] == [{"x": 1, "y": 1, "z": 1}] * 2
    assert all((batch.folder / "README.md").exists() for batch in batches)


def test_only_replies_that_answer_a_prompt_are_taken(tmp_path):
    answers = tmp_path / "answers"
    answers.mkdir()
    for name in "abc":
        (answers / f"{name}.prompt.md").write_text("ask")
    pilot_answers.hand_out(tmp_path, 1)
    (tmp_path / "batch-0" / "a.reply.md").write_text("an answer")
    (tmp_path / "batch-0" / "b.reply.md").write_text(" \n")
    (tmp_path / "batch-0" / "stranger.reply.md").write_text("an answer")
    with pytest.raises(ValueError, match="collect first"):
        pilot_answers.hand_out(tmp_path, 1)
    found = pilot_answers.collect(tmp_path)
    assert (found.new, found.missing) == (("a",), ("b", "c"))
    assert len(found.refused) == 2
    assert (answers / "a.reply.md").read_text() == "an answer"
    assert pilot_answers.collect(tmp_path).new == ()
