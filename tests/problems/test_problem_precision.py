"""`--precision` replaces the precision of a problem's policy, and nothing else."""

from dataclasses import replace

import pytest

from hotloop.errors import ConfigError
from hotloop.plan import plan_search
from hotloop.problems import load_problem_spec
from hotloop.problems.precision import describe_precision, replaced_precision, with_precision

MODEL = """
import torch
N = 64

class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2

def get_inputs():
    return [torch.rand(N)]

def get_init_inputs():
    return []
"""
STATES_STRICT = MODEL + 'policy = {"precision": "strict", "library_calls": "none"}\n'
STATES_OTHER = MODEL + 'policy = {"library_calls": "none"}\n'
ATTENTION = "B, H, S, D = 1, 2, 64, 32\n"
PROMPT = f"Make this fast:\n```python\n{MODEL}```\n"


@pytest.fixture
def load(tmp_path):
    def load(text, name="p.py", **options):
        path = tmp_path / name
        path.write_text(text)
        return load_problem_spec(path, device="cpu", **options)

    return load


@pytest.mark.parametrize(
    ("text", "name"),
    [(MODEL, "p.py"), (STATES_STRICT, "p.py"), (ATTENTION, "p.py"), (PROMPT, "p.md")],
)
def test_every_kind_of_problem_takes_it_and_becomes_another_problem(load, text, name):
    own = load(text, name)
    found = load(text, name, precision="tf32")
    assert found.policy == replace(own.policy, precision="tf32")
    assert replace(found, policy=own.policy) == own, "nothing else changes"
    assert found.id != own.id


def test_what_holds_anyway_leaves_the_problem_as_it_is(load):
    assert load(MODEL, precision="as_shipped").id == load(MODEL).id
    assert load(STATES_STRICT, precision="strict").id == load(STATES_STRICT).id
    assert with_precision(load(STATES_STRICT), None).policy.precision == "strict"


@pytest.mark.parametrize(
    ("text", "stated"), [(STATES_STRICT, "strict"), (STATES_OTHER, None), (MODEL, None)]
)
def test_the_option_wins_over_the_file_and_that_is_said(load, text, stated):
    found = load(text, precision="tf32")
    assert replaced_precision(found) == stated
    assert describe_precision(found) == "precision: tf32, by --precision" + (
        f"; the file states {stated}" if stated else ""
    )


def test_nothing_is_said_of_a_file_that_agrees(load):
    assert replaced_precision(load(STATES_STRICT, precision="strict")) is None
    assert replaced_precision(load(STATES_STRICT)) is None


@pytest.mark.parametrize("name", ["TF32", "bf16", "fp16", ""])
def test_what_is_no_choice_is_one_line(load, name):
    with pytest.raises(ConfigError, match="--precision: expected one of as_shipped, strict, tf32"):
        load(MODEL, precision=name)


def test_a_search_repeats_it_and_lies_in_a_folder_of_its_own(load, tmp_path):
    load(MODEL)
    given = {"device": "cpu", "min_isolation": "T0"}
    own = plan_search(tmp_path / "p.py", **given)
    strict = plan_search(tmp_path / "p.py", precision="strict", **given)
    assert "--precision" not in own.search_command()
    assert "--precision strict" in strict.search_command()
    assert "--precision strict" in strict.verify_command()
    assert own.folder != strict.folder
    loaded = plan_search(own.problem, precision="strict", **given)
    assert loaded.problem == strict.problem, "a loaded problem takes it as a file does"
