"""The whole loop with a model: a real HTTP server, the real judge, Triton's interpreter."""

import json
import os
import subprocess
import sys

import pytest

from hotloop.errors import Pending
from hotloop.llm.call_notes import CallNotes
from hotloop.llm.recording import Recording, write_recording
from hotloop.store.memory import MemoryStore
from hotloop.store.reader import RunReader
from hotloop.testing.model_server import ModelServer, Turn

pytestmark = pytest.mark.slow

PROBLEM = """import torch
import torch.nn as nn

ROWS, COLUMNS = 8, 64


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2.0


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
"""
KERNEL = """import torch
import triton
import triton.language as tl

BLOCK = 128
TUNABLES = {{"BLOCK": [128, 256]}}


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr + i, tl.maximum(x, 0.0) * {factor}, mask=i < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, y, x.numel(), BLOCK=BLOCK)
        return y
"""


def reply(factor):
    return f"One program a block.\n\n```python\n{KERNEL.format(factor=factor)}```\n"


def hotloop(*args, cwd, key="sk-secret-of-the-test"):
    env = {**os.environ, "OPENAI_API_KEY": key}
    command = [sys.executable, "-m", "hotloop", *map(str, args)]
    return subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, timeout=400, check=False
    )


@pytest.fixture
def problem(tmp_path):
    path = tmp_path / "scaled_relu.py"
    path.write_text(PROBLEM, encoding="utf-8")
    return path


OPTIONS = ("--device", "cpu", "--strategy", "refine", "--json")


def test_a_wrong_draft_is_told_why_and_mended(problem, tmp_path):
    turns = (Turn(text=reply("3.0")), Turn(text="I have no idea."), Turn(text=reply("2.0")))
    with ModelServer(*turns) as server:
        done = hotloop(
            "optimize", problem, "--model", f"openai:some-model@{server.url}", *OPTIONS,
            "--max-calls", 3, "--out", "run", cwd=tmp_path,
        )  # fmt: skip
        asked = [request.body["messages"][-1]["content"] for request in server.asked]
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["passed"]
    assert len(asked) == 3
    assert "got / expected is 1.5" in asked[1], "the constant ratio is told"
    assert "prose alone" in asked[2], "why the last answer held no code"
    with RunReader(tmp_path / "run") as run:
        attempts = {a.id: a for a in run.attempts()}
        assert [attempts[i].verdict.status for i in (1, 2, 3)] == [
            "INCORRECT_NUMERICAL", "NO_CODE", "PASSED",
        ]  # fmt: skip
        assert any(a.action == "sweep" for a in attempts.values()), "the tunables were swept"
        assert sum(note["calls"] for note in run.notes("call_cost")) == 3
    everything = b"".join(p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file())
    assert b"sk-secret-of-the-test" not in everything
    assert "sk-secret-of-the-test" not in done.stdout + done.stderr
    again = hotloop(
        "optimize", problem, "--model", f"openai:some-model@{server.url}", *OPTIONS,
        "--max-calls", 3, "--out", "run", cwd=tmp_path,
    )  # fmt: skip
    assert again.returncode == 0, "nothing is left to do, so the endpoint is not needed"


def test_a_folder_is_answered_between_two_commands_and_replayed(problem, tmp_path):
    command = (
        "optimize", problem, "--model", "dir:answers", *OPTIONS,
        "--max-calls", 1, "--no-wait", "--out", "run",
    )  # fmt: skip
    first = hotloop(*command, cwd=tmp_path)
    assert first.returncode == Pending.exit_code, first.stderr
    (prompt,) = (tmp_path / "answers").glob("*.prompt.md")
    answer = prompt.with_name(prompt.name.replace(".prompt.", ".reply."))
    answer.write_text(reply("2.0"), encoding="utf-8")
    second = hotloop(*command, cwd=tmp_path)
    assert second.returncode == 0, second.stderr

    with RunReader(tmp_path / "run") as run:
        store = MemoryStore()
        for event in run.events():
            if event.kind.startswith("call_"):
                store.note(event.kind, event.payload)
        recording = Recording(
            model="a test",
            problems={run.problem().id: run.problem().name},
            calls=tuple(CallNotes(store).recorded()),
        )
    write_recording(tmp_path / "calls.jsonl", recording)
    replayed = hotloop(
        "optimize", problem, "--model", "replay:calls.jsonl", *OPTIONS, "--out", "again",
        cwd=tmp_path,
    )  # fmt: skip
    assert replayed.returncode == 0, replayed.stderr
    assert json.loads(replayed.stdout)["stop_reason"] == "exhausted", "the recording ends"
    assert "not played" not in replayed.stderr


def test_a_starting_kernel_that_is_wrong_is_the_first_to_be_mended(problem, tmp_path):
    start = tmp_path / "mine.py"
    start.write_text(KERNEL.format(factor="3.0"), encoding="utf-8")
    with ModelServer(Turn(text=reply("2.0"))) as server:
        done = hotloop(
            "optimize", problem, "--model", f"openai:some-model@{server.url}", *OPTIONS,
            "--start", start, "--max-calls", 1, "--out", "run", cwd=tmp_path,
        )  # fmt: skip
        (asked,) = server.asked
    assert done.returncode == 0, done.stderr
    prompt = asked.body["messages"][-1]["content"]
    assert "* 3.0" in prompt
    assert "got / expected is 1.5" in prompt


def test_the_built_in_generator_begins_with_a_kernel_too(problem, tmp_path):
    start = tmp_path / "mine.py"
    start.write_text(KERNEL.format(factor="2.0"), encoding="utf-8")
    done = hotloop(
        "optimize", problem, "--device", "cpu", "--start", start, "--max-candidates", 4,
        "--out", "run", "--json", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with RunReader(tmp_path / "run") as run:
        actions = [a.action for a in run.attempts()]
    assert actions[0] == "start"
    assert {"sweep", "schedule"} <= set(actions)


def test_an_endpoint_that_is_not_there_is_one_line(problem, tmp_path):
    done = hotloop(
        "optimize", problem, "--model", "openai:m@http://127.0.0.1:9/v1", *OPTIONS,
        "--budget", "20s", "--out", "run", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 3
    assert "127.0.0.1:9" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
