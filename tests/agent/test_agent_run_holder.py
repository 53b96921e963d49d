"""Runs that somebody else started: seen by their lock, told to stop, counted, never mistaken."""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import pytest

from hotloop.agent import runs as agent_runs
from hotloop.agent.run_holder import holder_of, stop_holder
from hotloop.agent.runs import MAX_RUNNING, AgentRuns
from hotloop.agent.workspace import Workspace
from hotloop.errors import ConfigError

HOLDS = """
import signal, sys, threading
from pathlib import Path
from hotloop.store.lock import FolderLock
folder = Path(sys.argv[1])
lock = FolderLock(folder)
(folder / "journal.sqlite").touch()
if sys.argv[2] == "deaf":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
try:
    print("held", flush=True)
    threading.Event().wait(60)
except KeyboardInterrupt:
    pass
"""


@contextmanager
def held(folder, how="kind"):
    """Another process that works on a run, as one of a terminal or of another server."""
    folder.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(folder), how], stdout=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == b"held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def runs(tmp_path):
    made = AgentRuns(Workspace(tmp_path, device="cpu"))
    yield made
    made.close()


def test_a_run_of_another_process_is_running_and_can_be_stopped(runs, tmp_path):
    folder = tmp_path / "runs" / "theirs"
    with held(folder) as process:
        assert runs.find("theirs") == folder
        assert runs.is_running(folder)
        assert holder_of(folder).pid == process.pid
        with pytest.raises(ConfigError, match="theirs is going on"):
            runs.start("theirs", "problem.py", {})
        runs.stop(folder)
        assert not runs.is_running(folder)
        assert process.wait(10) == 0
    runs.stop(folder)  # nobody is there any more


def test_one_that_does_not_end_is_told_and_not_killed(runs, tmp_path):
    folder = tmp_path / "runs" / "deaf"
    with held(folder, "deaf") as process:
        with pytest.raises(ConfigError, match=rf"process {process.pid} .* goes on after 0 s"):
            runs.stop(folder, within_s=0.2)
        assert process.poll() is None
        assert runs.is_running(folder)


def test_a_file_that_an_ended_process_left_holds_nothing(runs, tmp_path):
    folder = tmp_path / "runs" / "old"
    with held(folder):
        pass
    assert json.loads((folder / "lock").read_text())["pid"] > 0
    assert holder_of(folder) is None
    assert not runs.is_running(folder)


def test_a_pid_that_was_given_to_another_process_is_not_signalled(tmp_path):
    bystander = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        told = {"pid": bystander.pid, "host": socket.gethostname()}
        (tmp_path / "lock").write_text(json.dumps(told))
        assert holder_of(tmp_path) is None
        stop_holder(tmp_path, 1.0)
        assert bystander.poll() is None
    finally:
        bystander.communicate(b"\n")
    assert bystander.returncode == 0


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x", "host": 1}', '{"pid": 1}'])
def test_a_lock_that_says_nothing_of_use_is_nobodys(tmp_path, text):
    (tmp_path / "lock").write_text(text)
    assert holder_of(tmp_path) is None
    assert holder_of(tmp_path / "missing") is None


def test_one_on_another_host_is_named_and_left(tmp_path):
    import fcntl

    (tmp_path / "lock").write_text(json.dumps({"pid": os.getpid(), "host": "elsewhere"}))
    assert holder_of(tmp_path) is None, "nobody has the lock"
    with open(tmp_path / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert holder_of(tmp_path).host == "elsewhere"
        with pytest.raises(ConfigError, match="on elsewhere; stop it there") as refused:
            stop_holder(tmp_path, 1.0)
    assert "\n" not in str(refused.value)


def test_runs_of_others_count_among_those_that_go_on(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(agent_runs, "MAX_RUNNING", 1)
    assert MAX_RUNNING > 1
    with held(tmp_path / "runs" / "theirs") as process:
        with pytest.raises(ConfigError, match="no more may: theirs"):
            runs.start("mine", "problem.py", {})
        process.send_signal(signal.SIGINT)
        process.wait(10)
    with pytest.raises(ConfigError, match="did not start"):  # there is no problem.py: it may try
        runs.start("mine", "problem.py", {})
