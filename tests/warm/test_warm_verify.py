"""A warm judge: found again, ended by itself, safe beside others and beside its own death."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from hotloop.core.verdict import Status, Tier
from hotloop.errors import InfraError, ProblemError, WorkerDied
from hotloop.testing.fakes import FakeVerifier, fake_candidate, make_problem
from hotloop.warm import client, server, wire
from hotloop.warm.client import Request, verify_warm

IDLE_S = 0.3


@dataclass(kw_only=True)
class ShortableFake(FakeVerifier):
    """A fake with two final tiers, as the real judge has."""

    short_final: bool = False


@pytest.fixture
def home(monkeypatch):
    """A folder with a short path: a socket's has room for 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="hl", dir="/tmp") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder)


class Served:
    """A server in a thread, behind the socket that `verify_warm` would look for."""

    def __init__(self, monkeypatch, **options):
        self.judges = []
        self.started = 0
        self._options = {"behaviour": lambda pins, tier: 1.0} | options
        monkeypatch.setattr(client, "_started", self._start)

    def _open(self):
        self.judges.append(ShortableFake(**self._options))
        return self.judges[-1]

    def _start(self, path, words):
        self.started += 1
        self.thread = threading.Thread(
            target=server.serve, args=(path, self._open), kwargs={"idle_s": IDLE_S}
        )
        self.thread.start()
        while self.thread.is_alive():
            connection = client._connect(path)
            if connection is not None:
                return connection
            time.sleep(0.01)
        raise AssertionError("the server ended before anybody could connect")


def ask(value=16, problem=None, **options):
    request = Request(
        problem=problem or make_problem(), candidate=fake_candidate({"BLOCK": value}),
        tier=Tier.FAST, **options,
    )  # fmt: skip
    return verify_warm(request, device="cuda", min_isolation="T1", idle_s=IDLE_S)


def test_the_second_call_finds_the_first_ones_judge_and_it_ends_by_itself(home, monkeypatch):
    served = Served(monkeypatch)
    assert ask(16).status is Status.PASSED
    assert ask(32).status is Status.PASSED
    assert (served.started, len(served.judges)) == (1, 1)
    served.thread.join(10)
    assert not served.thread.is_alive()
    assert not list(home.rglob("*.sock"))
    assert ask(16).passed
    assert served.started == 2
    served.thread.join(10)


def test_what_was_found_of_the_problem_comes_before_the_verdict(home, monkeypatch):
    served = Served(monkeypatch)
    seen = []
    request = Request(
        problem=make_problem(), candidate=fake_candidate({"BLOCK": 16}), tier=Tier.FINAL, short=True
    )
    verdict = verify_warm(request, device="cuda", min_isolation="T1", loaded=seen.append)
    assert [info.problem_id for info in seen] == [make_problem().id]
    assert verdict.tier is Tier.FINAL
    assert served.judges[0].short_final is True
    served.thread.join(10)


def test_an_error_comes_back_as_itself_and_the_next_call_gets_a_new_judge(home, monkeypatch):
    answers = [ProblemError("forward fails"), None]

    def load():
        error = answers.pop(0)
        if error is not None:
            raise error

    served = Served(monkeypatch, on_load=load)
    with pytest.raises(ProblemError, match="forward fails"):
        ask()
    assert ask().passed
    assert len(served.judges) == 2
    served.thread.join(10)


def test_two_calls_at_once_start_one_judge(home, monkeypatch):
    served = Served(monkeypatch)
    verdicts = []
    threads = [threading.Thread(target=lambda v=v: verdicts.append(ask(v))) for v in (16, 32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert [v.status for v in verdicts] == [Status.PASSED] * 2
    assert served.started == 1
    served.thread.join(10)


def test_noise_on_the_socket_changes_nothing(home, monkeypatch):
    served = Served(monkeypatch)
    assert ask().passed
    path = next(home.rglob("*.sock"))
    for noise in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\0\0\0\0\2{}"):
        connection = client._connect(path)
        connection.sendall(noise)
        connection.close()
    assert ask(32).passed
    assert served.started == 1
    served.thread.join(10)


def test_a_folder_that_others_can_enter_is_refused(home):
    folder = wire.home()
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o755)
    with pytest.raises(InfraError, match="open to others"):
        wire.home()
    folder.rmdir()
    folder.symlink_to("/tmp")
    with pytest.raises(InfraError, match="open to others"):
        wire.home()


def test_a_base_that_is_too_long_for_a_socket_is_left_for_tmp(home, monkeypatch):
    long_base = home / ("x" * 60)
    long_base.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long_base))
    assert wire.home().parent == Path("/tmp")
    assert len(str(wire.socket_path("cpu"))) < 90


def test_a_server_that_cannot_start_says_why(home):
    with pytest.raises(WorkerDied, match="did not start"):
        verify_warm(
            Request(problem=make_problem(), candidate=fake_candidate({}), tier=Tier.FAST),
            device="cuda", min_isolation="T9",
        )  # fmt: skip


def test_an_edited_hotloop_or_another_environment_gets_another_judge(home, monkeypatch):
    def place():
        found = wire.socket_path("cpu", *client._hotloop(), *client._surroundings())
        assert found == wire.socket_path("cpu", *client._hotloop(), *client._surroundings())
        return found

    before = place()
    monkeypatch.setenv("CUDA_HOME", "/elsewhere")
    assert place() != before
    monkeypatch.setenv("UNRELATED", "1")
    moved = place()
    package, newest = client._hotloop()
    monkeypatch.setattr(client, "_hotloop", lambda: (package, newest + "0"))
    assert place() != moved


def test_errors_of_unknown_kinds_are_the_machines():
    with pytest.raises(InfraError, match="text"):
        wire.raise_error({"error": "SystemExit", "message": "text"})


PROBLEM = """\
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(64)]


def get_init_inputs():
    return []
"""
KERNEL = """\
import torch
import triton
import triton.language as tl


@triton.jit
def relu(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, tl.maximum(x, 0.0), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
        return out
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_command_reuses_a_real_judge_and_survives_its_death(home, tmp_path):
    (tmp_path / "problem.py").write_text(PROBLEM)
    (tmp_path / "kernel.py").write_text(KERNEL)
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "XDG_RUNTIME_DIR": str(home)}

    def call():
        began_s = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "hotloop", "verify", "problem.py", "kernel.py", "--warm"],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "PASSED" in done.stdout
        return time.monotonic() - began_s

    def server_pid():
        found = subprocess.run(
            ["pgrep", "-f", f"hotloop.warm.server --socket {home}"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        (pid,) = found.stdout.split()
        return int(pid)

    cold_s, warm_s = call(), call()
    assert warm_s < cold_s
    first = server_pid()
    os.kill(first, signal.SIGKILL)
    call()  # the socket that it left leads nowhere: another is started
    second = server_pid()
    assert second != first
    os.kill(second, signal.SIGTERM)
