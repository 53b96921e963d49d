"""Recordings can be read, and are of what the results and the decisions say of them."""

import json
from pathlib import Path

import pytest

from hotloop.core.model import CallKey, Message, Prompt, Role
from hotloop.errors import NotRecorded
from hotloop.llm.recording import read_recording
from hotloop.llm.replay import ReplayModel
from hotloop.verify.bundle import read_verdicts

ROOT = Path(__file__).parents[2] / "benchmarks"
RECORDINGS = ("model_pilot.jsonl", "model_pilot_cuda.jsonl")


@pytest.mark.parametrize("name", RECORDINGS)
def test_each_call_is_played_and_no_other(name):
    path = ROOT / "recordings" / name
    recording = read_recording(path)
    results = json.loads((ROOT / "results" / "model_pilot_h200.json").read_text(encoding="utf-8"))
    named = {row["problem"] for row in results["rows"]}
    assert set(recording.problems.values()) <= named
    assert recording.model == "LLM agent answering dir:"
    model = ReplayModel(path)
    prompt = Prompt(messages=(Message(role=Role.USER, text="another wording"),))
    for call in recording.calls:
        reply = model.complete(prompt, key=call.key, deadline_s=None)
        assert reply.text.strip()
    missing = CallKey(problem_id=recording.calls[0].key.problem_id, attempt=99)
    with pytest.raises(NotRecorded):
        model.complete(prompt, key=missing, deadline_s=None)


def test_the_refusals_that_were_mistakes_are_as_the_decision_tells_them():
    packed = ROOT / "recordings" / "kernelbench_mistaken_verdicts.jsonl.gz"
    found = {}
    for verdict in read_verdicts(packed).verdicts:
        assert not verdict.passed
        (case,) = [c for c in verdict.correctness.cases if not c.passed]
        found[case.profile] = (case.rule, round(case.rmse / case.eager_rmse, 2))
    assert found == {"negative": ("tile", 0.58), "small": ("tile", 0.62), "far": ("bulk", 2.8)}
    told = (ROOT.parent / "docs" / "decisions" / "006-what-the-gate-allows.md").read_text("utf-8")
    assert packed.name in told
    assert "0.58 times eager's RMSE" in told
    assert "2.8 times eager's error" in told
