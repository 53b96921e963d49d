"""A warm judge that is there and does not answer: it is noticed, ended, and another one judges."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
import test_warm_verify
from test_warm_verify import KERNEL, PROBLEM, Served, ShortableFake, ask

from hotloop import api
from hotloop.core.verdict import Status, Tier
from hotloop.testing.fakes import FakeVerifier, fake_candidate, make_problem
from hotloop.warm import client, line, watch
from hotloop.warm.judge import WarmJudge
from hotloop.warm.watch import JudgeSilent

SERVER = """
import os, signal, sys
from pathlib import Path
from hotloop.testing.fakes import FakeVerifier
from hotloop.warm.server import serve

class Fake(FakeVerifier):
    short_final = False

def judge(pins, tier):
    if pins["BLOCK"] == 64:
        os.kill(os.getpid(), signal.SIGSTOP)
    return 1.0

serve(Path(sys.argv[1]), lambda: Fake(behaviour=judge), idle_s=30.0)
"""
FREEZES = 64


@pytest.fixture
def home(monkeypatch):
    with tempfile.TemporaryDirectory(prefix="hl", dir="/tmp") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder)


@pytest.fixture
def servers(home, monkeypatch):
    """Processes that serve fakes; the client waits for them no longer than a moment."""
    found = []

    def start(path, words):
        found.append(subprocess.Popen([sys.executable, "-c", SERVER, str(path)]))
        while found[-1].poll() is None:
            connection = client._connect(path)
            if connection is not None:
                return connection
            time.sleep(0.01)
        raise AssertionError("the server ended before anybody could connect")

    monkeypatch.setattr(client, "_started", start)
    yield found
    for process in found:
        process.kill()
        process.wait()


def test_a_frozen_server_is_ended_and_the_next_call_starts_another(servers, monkeypatch):
    assert ask().passed
    servers[0].send_signal(signal.SIGSTOP)
    monkeypatch.setattr(client, "SILENT_S", 0.5)
    with pytest.raises(JudgeSilent) as caught:
        ask()
    told = f"the warm judge is there and does not answer; it was ended (pid {servers[0].pid})"
    assert str(caught.value) == told
    assert servers[0].wait(10) == -signal.SIGKILL
    monkeypatch.setattr(client, "SILENT_S", 10.0)
    assert ask().passed
    assert len(servers) == 2


def test_one_that_freezes_while_it_judges_is_noticed_too(servers, monkeypatch):
    assert ask(16).passed
    monkeypatch.setattr(client, "SILENT_S", 1.5)
    with pytest.raises(JudgeSilent, match="does not answer; it was ended"):
        ask(FREEZES)
    assert servers[0].wait(10) == -signal.SIGKILL


def test_one_that_only_takes_long_is_waited_for(home, monkeypatch):
    monkeypatch.setattr(client, "SILENT_S", 0.3)
    monkeypatch.setattr(line, "BEAT_S", 0.05)
    served = Served(monkeypatch, behaviour=lambda pins, tier: time.sleep(0.8) or 1.0)
    verdicts = []
    calls = [threading.Thread(target=lambda v=v: verdicts.append(ask(v))) for v in (16, 32)]
    for call in calls:
        call.start()
    for call in calls:  # the second waits for its turn, and hears that the server is there
        call.join(20)
    assert [verdict.status for verdict in verdicts] == [Status.PASSED] * 2
    assert served.started == 1
    served.thread.join(20)


class Hung(FakeVerifier):
    """A fake whose judge stops answering in the middle of a verification."""

    def __init__(self, **options):
        super().__init__(**options)
        self.short_final = False
        self.ended = threading.Event()
        self.silences = 0
        self.is_silent = False

    def verify(self, candidate, tier, **options):
        self.is_silent = True
        if self.ended.wait(0.0 if self.silences else 20):
            raise client.WorkerDied("the judge's process ended")
        return super().verify(candidate, tier, **options)

    def is_alive(self, within_s):
        return not self.is_silent

    def abandon(self):
        self.ended.set()


def test_a_server_whose_judge_hangs_gives_it_up_and_says_so(home, monkeypatch):
    monkeypatch.setattr(watch, "ASK_S", 0.05)
    opened = []

    class Once(Served):
        def _open(self):
            opened.append(Hung() if not opened else super()._open())
            return opened[-1]

    served = Once(monkeypatch, behaviour=lambda pins, tier: 1.0)
    with pytest.raises(
        JudgeSilent, match="fell silent: the judge answered nothing for 15 s and was ended"
    ):
        ask()
    assert ask().passed, "another judge took its place in the same server"
    assert (served.started, len(opened)) == (1, 2)
    served.thread.join(20)


def test_a_judge_that_answers_beside_its_work_is_left_in_peace(home, monkeypatch):
    monkeypatch.setattr(watch, "ASK_S", 0.02)
    asked = []

    class Answers(ShortableFake):
        def is_alive(self, within_s):
            return asked.append(within_s) or True

        def abandon(self):
            raise AssertionError("it answered")

    monkeypatch.setattr(test_warm_verify, "ShortableFake", Answers)
    served = Served(monkeypatch, behaviour=lambda pins, tier: time.sleep(0.3) or 1.0)
    assert ask().passed
    assert len(asked) > 1
    served.thread.join(20)


class Leavable(ShortableFake):
    """A fake whose judge may have died since the last call."""

    is_there = True

    def is_alive(self, within_s):
        return self.is_there

    def abandon(self):
        raise AssertionError("nobody uses it")


@pytest.mark.parametrize(("is_there", "judges"), [(True, 1), (False, 2)])
def test_a_judge_that_died_since_the_last_call_is_replaced(is_there, judges):
    opened = []

    def open_judge():
        opened.append(Leavable(behaviour=lambda pins, tier: 1.0))
        return opened[-1]

    judge = WarmJudge(open_judge)
    problem = make_problem()
    judge.load(problem)
    opened[0].is_there = is_there
    assert judge.verify(problem, fake_candidate({}), Tier.FAST).passed
    assert len(opened) == judges
    judge.close()


def test_the_call_goes_on_with_a_judge_of_its_own_and_says_why(home, monkeypatch):
    def silent(request, *, loaded, **options):
        loaded("info")
        raise JudgeSilent("the warm judge is there and does not answer")

    cold = ShortableFake(behaviour=lambda pins, tier: 1.0)
    monkeypatch.setattr(api, "verify_warm", silent)
    monkeypatch.setattr(api, "LocalVerifier", lambda where, min_isolation: cold)
    monkeypatch.setattr(api, "find_device", lambda name: "cpu")
    heard = []
    verdict = api.verify(make_problem(), fake_candidate({}), warm=True, listen=heard.append)
    assert verdict.passed
    assert [event.kind for event in heard] == ["setup", "warning"]
    assert heard[1].payload["message"] == (
        "the warm judge is there and does not answer; this call goes on with a judge of its own"
    )


def test_a_lock_that_a_stopped_command_holds_is_not_waited_for_for_ever(home, monkeypatch):
    import fcntl

    monkeypatch.setattr(client, "LOCK_S", 0.1)
    path = home / "x.sock"
    with open(path.with_suffix(".lock"), "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with (
            pytest.raises(JudgeSilent, match="starting a warm judge for too long"),
            client._connected(path, []),
        ):
            pass


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_command_passes_a_frozen_judge_by(home, tmp_path):
    (tmp_path / "problem.py").write_text(PROBLEM)
    (tmp_path / "kernel.py").write_text(KERNEL)
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "XDG_RUNTIME_DIR": str(home)}

    def call():
        done = subprocess.run(
            [sys.executable, "-m", "hotloop", "verify", "problem.py", "kernel.py", "--warm"],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "PASSED" in done.stdout
        return done.stderr

    def server_pids():
        words = ["pgrep", "-f", f"hotloop.warm.server --socket {home}"]
        found = subprocess.run(words, capture_output=True, text=True, check=False)
        return [int(pid) for pid in found.stdout.split()]

    assert "does not answer" not in call()
    (server,) = server_pids()
    os.kill(server, signal.SIGSTOP)
    told = call()
    assert f"does not answer; it was ended (pid {server}); this call goes on" in told
    assert server_pids() == []
    assert "does not answer" not in call()
    (server,) = server_pids()
    children = subprocess.run(
        ["pgrep", "-P", str(server)], capture_output=True, text=True, check=True
    )
    (judge,) = [int(pid) for pid in children.stdout.split()]
    os.kill(judge, signal.SIGSTOP)
    assert "this call goes on" not in call()  # another judge took its place before the call
    assert server_pids() == [server]
    assert not os.path.exists(f"/proc/{judge}")
    assert "goes on with a judge of its own" not in call()
    os.kill(server, signal.SIGTERM)
