"""Runs of an agent: names, prompts and replies; bad ones are refused."""

import pytest

from hotloop.agent.runs import AgentRuns
from hotloop.agent.workspace import Workspace
from hotloop.errors import ConfigError


@pytest.fixture
def runs(tmp_path):
    return AgentRuns(Workspace(tmp_path, device="cpu"))


@pytest.fixture
def asked(tmp_path):
    """A run's folder and its answers, as a process would leave them."""
    folder = tmp_path / "runs" / "one"
    answers = tmp_path / "runs" / "one.answers"
    folder.mkdir(parents=True)
    answers.mkdir()
    (folder / "journal.sqlite").touch()
    (answers / "a0001-x.prompt.md").write_text("write a kernel")
    return folder


@pytest.mark.parametrize("name", ["", "..", "a/b", "../x", ".hidden", "a" * 81, "a\nb"])
def test_a_bad_name_is_refused(runs, name):
    with pytest.raises(ConfigError, match="a run's name"):
        runs.start(name, "problem.py", {})
    with pytest.raises(ConfigError):
        runs.find(name)


def test_a_run_that_is_not_there_is_named_with_those_that_are(runs, asked):
    assert runs.names() == ["one"]
    assert runs.find("one") == asked
    with pytest.raises(ConfigError, match="there are: one"):
        runs.find("two")


def test_a_prompt_is_answered_once(runs, asked):
    question = runs.question(asked, 0)
    assert (question.id, question.text) == ("a0001-x", "write a kernel")
    runs.reply(asked, question.id, "```python\nx = 1\n```")
    assert (asked.with_name("one.answers") / "a0001-x.reply.md").read_text().startswith("```python")
    assert runs.question(asked, 0) is None
    with pytest.raises(ConfigError, match="answered already"):
        runs.reply(asked, question.id, "again")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("nobody-asked", "text"),
        ("../../etc/passwd", "text"),
        ("a0001-x", "  \n"),
        ("a0001-x", "x" * 4_000_001),
    ],
)
def test_a_bad_reply_is_refused_and_nothing_is_written(runs, asked, call, text):
    with pytest.raises(ConfigError):
        runs.reply(asked, call, text)
    assert [p.name for p in asked.with_name("one.answers").iterdir()] == ["a0001-x.prompt.md"]
