"""`--precision` on the commands that take a problem: what they say, and what they refuse."""

import json

import pytest

from hotloop.cli.main import main

NATIVE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.rand(16, 24) - 0.5]

def get_init_inputs():
    return []

policy = {"precision": "tf32"}
"""
KERNEL = """
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
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.py").write_text(NATIVE)
    (tmp_path / "k.py").write_text(KERNEL)
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [("optimize", "p.py"), ("verify", "p.py", "k.py"), ("audit", "p.py"), ("prompt", "p.py")],
)
def test_an_unknown_policy_is_one_line(place, capsys, words):
    assert main([*words, "--device", "cpu", "--precision", "half"]) == 2
    error = capsys.readouterr().err.strip()
    assert error.endswith("--precision: expected one of as_shipped, strict, tf32, got 'half'")
    assert len(error.splitlines()) == 1
    assert not (place / "runs").exists()


def test_a_run_has_its_own(place, capsys):
    words = ("optimize", "p.py", "--model", "dir:m", "--judge", "bundle", "--device", "cpu")
    assert main([*words, "--no-wait", "--out", "r", "--precision", "strict"]) == 4
    assert "precision: strict, by --precision; the file states tf32" in capsys.readouterr().err
    assert main(["prompt", "r", "--precision", "strict"]) == 2
    assert "--precision: a run has its own; leave it out" in capsys.readouterr().err
    assert main([*words, "--no-wait", "--out", "r", "--precision", "tf32"]) == 2
    assert "use another --out" in capsys.readouterr().err


@pytest.mark.slow
def test_the_verdict_states_the_policy_that_held(place, capsys):
    given = ("--device", "cpu", "--min-isolation", "T0", "--json")
    assert main(["verify", "p.py", "k.py", *given]) == 0
    own = json.loads(capsys.readouterr().out)
    assert main(["verify", "p.py", "k.py", *given, "--precision", "strict"]) == 0
    said = capsys.readouterr()
    strict = json.loads(said.out)
    assert (own["precision_policy"], strict["precision_policy"]) == ("tf32", "strict")
    assert own["problem_id"] != strict["problem_id"]
    assert "precision: strict, by --precision; the file states tf32" in said.err


@pytest.mark.slow
def test_audit_and_prompt_load_the_problem_under_it(place, capsys):
    given = ("--device", "cpu", "--min-isolation", "T0", "--precision", "strict")
    assert main(["prompt", "p.py", *given]) == 0
    assert "full precision everywhere" in capsys.readouterr().out
    assert main(["audit", "p.py", *given]) == 0
    assert "precision: strict, by --precision" in capsys.readouterr().err
