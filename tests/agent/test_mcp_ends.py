"""However a server of `hotloop mcp` ends, its runs end too; and what its runs may ask."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from test_mcp_client import ROW_SUM

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

RUN = {"name": "mine", "problem": "row_sum.py", "budget": "30m"}
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


class Server:
    """A server and its pipes, without a client that would end it kindly."""

    def __init__(self, root, *options, **environment):
        self.root = root
        words = [sys.executable, "-m", "hotloop", "mcp", "--root", str(root), "--device", "cpu"]
        self.process = subprocess.Popen(
            [*words, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"CUDA_VISIBLE_DEVICES": ""} | environment,
        )
        self._send(id=0, method="initialize", params=HELLO)
        self._answer(0)
        self._send(method="notifications/initialized")

    def call(self, tool, **arguments):
        """Return the answer's text, and whether it is an error."""
        self._send(id=1, method="tools/call", params={"name": tool, "arguments": arguments})
        result = self._answer(1)["result"]
        return result["content"][0]["text"], result.get("isError", False)

    def prompt(self, run):
        """Return the next prompt of a run."""
        text, is_error = self.call("next_prompt", run=run)
        while text.startswith("no prompt yet") and not is_error:
            text, is_error = self.call("next_prompt", run=run)
        assert text.startswith("prompt_id"), text
        return text

    def _send(self, **message):
        line = json.dumps({"jsonrpc": "2.0", **message}) + "\n"
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()

    def _answer(self, number):
        while line := self.process.stdout.readline():
            message = json.loads(line)
            if message.get("id") == number and "method" not in message:
                return message
        raise AssertionError("the server is gone")


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "row_sum.py").write_text(ROW_SUM)
    return tmp_path


@contextmanager
def serving(root, *options, **environment):
    server = Server(root, *options, **environment)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.communicate()


def is_held(folder):
    """Whether a process holds a run's folder."""
    with open(folder / "lock") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def await_release(folder, limit_s):
    end_s = time.monotonic() + limit_s
    while is_held(folder):
        assert time.monotonic() < end_s, "the run lives on"
        time.sleep(0.1)


def test_a_run_ends_with_a_server_that_is_killed(workspace):
    with serving(workspace) as server:
        text, is_error = server.call("start_run", **RUN)
        assert not is_error, text
        server.prompt("mine")
        time.sleep(2)
        assert is_held(workspace / "runs" / "mine"), "it waits for a reply"
        server.process.send_signal(signal.SIGKILL)
        assert server.process.wait(5) == -signal.SIGKILL
        assert server.process.stdin is not None  # our end is open: only the death tells
        await_release(workspace / "runs" / "mine", 15)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_server_and_its_runs_while_stdin_is_open(workspace, number):
    with serving(workspace) as server:
        text, is_error = server.call("start_run", **RUN)
        assert not is_error, text
        server.prompt("mine")
        server.process.send_signal(number)
        assert server.process.wait(30) == 128 + number
        assert not is_held(workspace / "runs" / "mine")


def test_an_ended_run_takes_no_reply_and_goes_on_with_the_same_arguments(workspace):
    with serving(workspace) as server:
        server.call("start_run", **RUN)
        prompt = server.prompt("mine")
        handle = prompt.split()[1]
        reply = {"run": "mine", "prompt_id": handle, "reply": "```python\nx = 1\n```"}
        server.call("stop_run", run="mine")
        text, is_error = server.call("next_prompt", run="mine")
        assert text.startswith("the run has ended"), text
        text, is_error = server.call("submit_reply", **reply)
        assert is_error
        assert "start_run with the same arguments goes on" in text
        server.call("start_run", **RUN)
        assert server.prompt("mine") == prompt
        text, is_error = server.call("submit_reply", **reply)
        assert not is_error, text
        assert text.startswith("taken")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"budget": "-3s"}, "budget"),
        ({"max_calls": -4}, "max_calls"),
        ({"language": "fortran"}, "--language fortran"),
        ({"strategy": "tune"}, "--strategy tune"),
    ],
)
def test_a_run_with_bad_options_did_not_start(workspace, wrong, told):
    with serving(workspace) as server:
        text, is_error = server.call("start_run", **(RUN | wrong))
        assert is_error, text
        assert "did not start" in text
        assert told in text
        assert len(text.splitlines()) == 1
        assert server.call("list_runs")[0].startswith("no runs yet")


@contextmanager
def endpoint():
    """Yield an endpoint's address and what was sent to it: the keys."""
    keys = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):  # noqa: N802
            keys.append(self.headers.get("Authorization"))
            self.send_error(401)

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", keys
    finally:
        server.shutdown()
        server.server_close()


def test_a_key_goes_where_the_server_was_told_and_nowhere_else(workspace):
    for name in ("openai", "rich"):  # the workspace's modules are not the coordinator's
        evil = f"open({str(workspace / 'imported')!r}, 'w').close()\n"
        (workspace / f"{name}.py").write_text(evil)
    with endpoint() as (ours, our_keys), endpoint() as (other, other_keys):
        named = f"openai:gpt-5@{ours}"
        with serving(workspace, "--model", named, OPENAI_API_KEY="sk-secret") as server:
            text, is_error = server.call("start_run", **RUN, model=f"openai:gpt-5@{other}")
            assert is_error
            assert "model: expected agent or builtin" in text
            text, is_error = server.call("start_run", **RUN, model=named)
            assert not is_error, text
            deadline_s = time.monotonic() + 90
            while not our_keys and time.monotonic() < deadline_s:
                time.sleep(0.2)
    assert set(our_keys) == {"Bearer sk-secret"}
    assert other_keys == []
    assert not (workspace / "imported").exists()
