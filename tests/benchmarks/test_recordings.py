"""The recordings of the pilot can be read, and are of the problems that its results name."""

import json
from pathlib import Path

import pytest

from hotloop.core.model import CallKey, Message, Prompt, Role
from hotloop.errors import NotRecorded
from hotloop.llm.recording import read_recording
from hotloop.llm.replay import ReplayModel

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
