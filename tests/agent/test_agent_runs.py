"""Runs of an agent: names, prompts and replies, links and limits; bad ones are refused."""

import os
import sys

import pytest

from hotloop.agent.plain_files import read_plain
from hotloop.agent.runs import MAX_RUNNING, AgentRuns
from hotloop.agent.workspace import Workspace
from hotloop.errors import ConfigError

STAND_IN = """
import os, pathlib, sys
words = sys.argv[1:]
out = pathlib.Path(words[words.index("--out") + 1])
if words[-1] == "bad.py":
    sys.exit("hotloop: --budget: expected a duration")
try:  # a stop may come as soon as the journal is there
    out.mkdir(exist_ok=True)
    (out / "lock").write_text(str(os.getpid()))
    print("begun", flush=True)
    (out / "journal.sqlite").touch()
    if words[-1] == "foreign.py":
        print("hotloop: this folder is another run's", flush=True)
        sys.exit(2)
    sys.stdin.read()
except KeyboardInterrupt:
    print("stopped as told", flush=True)
"""
"""Takes a folder and asks nothing, as a run does whose judge is being started."""
MODEL = {"model": "agent"}


@pytest.fixture
def runs(tmp_path):
    program = (sys.executable, "-I", "-S", "-c", STAND_IN)
    made = AgentRuns(Workspace(tmp_path, device="cpu"), program=program)
    yield made
    made.close()


@pytest.fixture
def asked(runs, tmp_path):
    """The folder of a run that is going on and has asked something."""
    folder = runs.start("one", "problem.py", MODEL)
    (tmp_path / "runs" / "one.answers" / "a0001-x.prompt.md").write_text("write a kernel")
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


def test_a_run_that_says_no_is_an_error_and_one_that_begins_is_none(runs):
    with pytest.raises(ConfigError, match="did not start: --budget: expected a duration"):
        runs.start("bad", "bad.py", {})
    assert runs.names() == []
    assert runs.is_running(runs.start("good", "problem.py", {}))


def test_a_run_that_may_not_go_on_is_an_error_and_one_that_may_is_none(runs):
    folder = runs.start("one", "problem.py", {})
    runs.stop(folder)
    with pytest.raises(ConfigError, match="did not start: this folder is another run's"):
        runs.start("one", "foreign.py", {})
    assert runs.is_running(runs.start("one", "problem.py", {}))


def test_a_file_with_an_options_name_is_a_problem(runs, tmp_path):
    folder = runs.start("one", "--model=openai:m@http:", {"model": "builtin"})
    process = runs._processes[folder]
    assert process.args[-2:] == ["--", "--model=openai:m@http:"]


def test_so_many_runs_and_no_more(runs):
    first, *_ = [runs.start(f"run{i}", "problem.py", {}) for i in range(MAX_RUNNING)]
    with pytest.raises(ConfigError, match=r"no more may: run0, run1") as refused:
        runs.start("more", "problem.py", {})
    assert "\n" not in str(refused.value)
    runs.stop(first)
    assert runs.is_running(runs.start("more", "problem.py", {}))


def test_a_prompt_is_answered_once(runs, asked):
    question = runs.question(asked, 0)
    assert (question.id, question.text) == ("a0001-x", "write a kernel")
    runs.reply(asked, question.id, "```python\nx = 1\n```")
    assert (asked.with_name("one.answers") / "a0001-x.reply.md").read_text().startswith("```python")
    assert runs.question(asked, 0) is None
    with pytest.raises(ConfigError, match="answered already"):
        runs.reply(asked, question.id, "again")


def test_a_run_that_has_ended_asks_and_takes_nothing_until_it_goes_on(runs, asked):
    runs.stop(asked)
    assert runs.question(asked, 0) is None
    assert runs.said(asked).endswith("stopped as told")
    with pytest.raises(ConfigError, match="start_run with the same arguments goes on"):
        runs.reply(asked, "a0001-x", "text")
    runs.start("one", "problem.py", MODEL)
    assert runs.question(asked, 0).id == "a0001-x"
    runs.reply(asked, "a0001-x", "text")


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
    answers = asked.with_name("one.answers")
    before = sorted(answers.iterdir())
    with pytest.raises(ConfigError):
        runs.reply(asked, call, text)
    assert sorted(answers.iterdir()) == before


@pytest.mark.parametrize("link", ["a.log", "a.answers", "a", "a/lock", "a.answers/model.txt"])
def test_a_link_in_a_runs_place_is_refused_and_not_followed(runs, tmp_path, link):
    outside = tmp_path.with_name(f"{tmp_path.name}-outside")
    outside.mkdir()
    (outside / "lock").write_text("mine")
    place = tmp_path / "runs" / link
    place.parent.mkdir(parents=True)
    place.symlink_to(outside if place.suffix == ".answers" or link == "a" else outside / "lock")
    with pytest.raises(ConfigError, match="is a link"):
        runs.start("a", "problem.py", MODEL)
    assert [p.name for p in outside.iterdir()] == ["lock"]
    assert (outside / "lock").read_text() == "mine"
    place.unlink()
    assert runs.is_running(runs.start("a", "problem.py", MODEL))


def test_a_runs_folder_outside_is_refused(runs, tmp_path):
    (tmp_path / "runs").symlink_to(tmp_path.parent)
    with pytest.raises(ConfigError, match="outside of the workspace"):
        runs.start("a", "problem.py", {})


def test_a_prompt_that_is_a_link_is_not_read(runs, asked, tmp_path):
    (tmp_path / "secret").write_text("secret")
    answers = asked.with_name("one.answers")
    (answers / "a0000-x.prompt.md").symlink_to(tmp_path / "secret")
    assert runs.question(asked, 0).text == "write a kernel"
    runs._log("one").unlink()
    os.symlink(tmp_path / "secret", tmp_path / "runs" / "one.log")
    with pytest.raises(ConfigError, match="is a link"):
        runs.said(asked)


def test_only_plain_files_are_read(tmp_path):
    (tmp_path / "plain").write_text("0123456789")
    (tmp_path / "link").symlink_to(tmp_path / "plain")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "missing"):
        with pytest.raises(OSError):  # noqa: PT011  which one is the system's affair
            read_plain(tmp_path / name, 10)
    assert read_plain(tmp_path / "plain", 4) == "0123"
    assert read_plain(tmp_path / "plain", 4, from_end=True) == "6789"
