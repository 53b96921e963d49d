"""The judge's side of the zygote: start children, watch them, end them.

A `Child` is an untrusted process behind a channel. Every wait has a deadline; a child that misses
it is killed with all its descendants. What it wrote to stdout and stderr is kept, capped.
"""

from __future__ import annotations

import itertools
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop import sandbox
from hotloop.errors import HotloopError, SandboxUnavailable, WorkerDied, WorkerTimeout
from hotloop.worker.channel import Channel, ChannelClosed, ChannelTimeout

ZYGOTE_START_S = 120.0
"""Imports of torch and triton take 3 to 10 s; a cold disk takes longer."""
FORK_S = 20.0


@dataclass(frozen=True, slots=True)
class Exit:
    """How a child ended."""

    code: int | None
    """Exit code, or None when a signal ended it."""
    signal: int | None
    swept: int
    """Descendants that outlived it and were killed."""

    def describe(self) -> str:
        """One phrase for a message."""
        if self.signal is not None:
            return f"was ended by {signal.Signals(self.signal).name}"
        return f"exited with code {self.code}"


class Zygote:
    """A running zygote; thread-safe."""

    def __init__(self, *, interpret: bool, folder: Path) -> None:
        """Start a zygote that keeps its own caches below `folder`."""
        ours, theirs = Channel.pair()
        env = sandbox.scrubbed_environment(str(folder))
        env["TMPDIR"] = str(folder)  # the temporary folder of a cage is made on entry
        if os.environ.get("PYTHONPATH"):
            env["PYTHONPATH"] = os.environ["PYTHONPATH"]
        if interpret:
            env["TRITON_INTERPRET"] = "1"
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-W",
                "ignore",
                "-m",
                "hotloop.worker.zygote",
                str(theirs.fileno()),
            ],
            env=env,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self._channel = ours
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._replies: dict[int, queue.Queue[dict[str, Any]]] = {}
        self._exits: dict[int, queue.Queue[Exit]] = {}
        self._ready = threading.Event()
        self._failed: HotloopError | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def fork(
        self, role: str, spec: sandbox.CageSpec, env: Mapping[str, str], fds: Sequence[int]
    ) -> tuple[int, queue.Queue[Exit]]:
        """Start a child; return its pid and the queue that its exit will arrive on.

        Raises:
            WorkerDied: the zygote is gone.
            WorkerTimeout: it did not answer.
        """
        self._ready.wait()  # it imports torch while the judge loads the problem
        if self._failed is not None:
            raise self._failed
        request_id = next(self._ids)
        reply: queue.Queue[dict[str, Any]] = queue.Queue()
        message = {"id": request_id, "role": role, "cage": spec.to_json(), "env": dict(env)}
        with self._lock:
            self._replies[request_id] = reply
            try:
                self._channel.send(message, fds)
            except ChannelClosed as exc:
                raise WorkerDied(f"expected a running zygote, got: {exc}; start again") from exc
        try:
            answer = reply.get(timeout=FORK_S)
        except queue.Empty:
            raise WorkerTimeout(f"the zygote did not fork within {FORK_S:.0f} s") from None
        if "pid" not in answer:
            raise WorkerDied("the zygote ended while forking a child; start again")
        with self._lock:
            exits = self._exits.setdefault(answer["pid"], queue.Queue())
        return answer["pid"], exits

    def close(self) -> None:
        """End the zygote and its children. Idempotent."""
        self._channel.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _await_ready(self) -> None:
        try:
            self._channel.receive(ZYGOTE_START_S)
        except ChannelTimeout:
            self._process.kill()
            raise WorkerTimeout(
                f"the zygote was not ready within {ZYGOTE_START_S:.0f} s; is torch importable?"
            ) from None
        except ChannelClosed:
            code = self._process.wait()
            raise WorkerDied(
                f"the zygote ended with code {code} before it was ready; run `hotloop doctor`"
            ) from None

    def _run(self) -> None:
        try:
            self._await_ready()
        except HotloopError as exc:
            self._failed = exc
            return
        finally:
            self._ready.set()
        self._read()

    def _read(self) -> None:
        while True:
            try:
                message, _ = self._channel.receive()
            except (ChannelClosed, ValueError, OSError):
                self._fail_waiters()
                return
            with self._lock:
                if "exited" in message:
                    exits = self._exits.setdefault(message["exited"], queue.Queue())
                    exits.put(_exit_of(message["status"], message["swept"]))
                elif message.get("id") in self._replies:
                    self._replies.pop(message["id"]).put(message)

    def _fail_waiters(self) -> None:
        with self._lock:
            for reply in self._replies.values():
                reply.put({})
            for exits in self._exits.values():
                exits.put(Exit(None, signal.SIGKILL, 0))


def _exit_of(status: int, swept: int) -> Exit:
    if os.WIFSIGNALED(status):
        return Exit(None, os.WTERMSIG(status), swept)
    return Exit(os.WEXITSTATUS(status), None, swept)


class ChildDied(Exception):
    """The child ended, or broke the protocol, before it answered."""

    def __init__(self, exit_: Exit | None, reason: str) -> None:
        super().__init__(reason)
        self.exit = exit_


class ChildTimeout(Exception):
    """The child did not answer within its deadline and was killed."""


class Child:
    """One untrusted child process: a candidate or a compile lane."""

    def __init__(
        self,
        zygote: Zygote,
        role: str,
        spec: sandbox.CageSpec,
        *,
        env: Mapping[str, str],
        arena_fd: int | None = None,
    ) -> None:
        ours, theirs = Channel.pair()
        read_end, write_end = os.pipe()
        fds = [theirs.fileno(), write_end] + ([arena_fd] if arena_fd is not None else [])
        try:
            self.pid, self._exits = zygote.fork(role, spec, env, fds)
        finally:
            theirs.close()
            os.close(write_end)
        self._channel = ours
        self._exit: Exit | None = None
        self._output_fd = read_end
        self.output = sandbox.OutputCollector(read_end)
        self.cage = self._enter()

    def request(self, message: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """Send one request and return the answer.

        Raises:
            ChildTimeout: no answer within the deadline; the child was killed.
            ChildDied: it ended, or sent something that is no answer.
        """
        deadline = time.monotonic() + timeout_s
        try:
            self._channel.send(message)
            self._drain_until_answer(deadline)
            answer, fds = self._channel.receive(max(0.001, deadline - time.monotonic()))
        except ChannelTimeout:
            self.kill()
            raise ChildTimeout(f"no answer within {timeout_s:.0f} s") from None
        except ChannelClosed as exc:
            self.kill()
            raise ChildDied(self._exit, str(exc)) from exc
        for fd in fds:  # nobody asked for descriptors
            os.close(fd)
        return answer

    def kill(self) -> Exit | None:
        """Kill the child with everything below it and wait for its end. Idempotent."""
        if self._exit is None:
            sandbox.kill_tree(self.pid, timeout_s=15.0)
            try:
                self._exit = self._exits.get(timeout=15.0)
            except queue.Empty:
                self._exit = None
            self.output.drain()
            os.close(self._output_fd)
            self._channel.close()
        return self._exit

    def close(self, timeout_s: float = 3.0) -> Exit | None:
        """Let the child end by itself, then make sure that it has."""
        if self._exit is not None:
            return self._exit
        try:
            self._channel.send({"op": "exit"})
            self._exit_wait(timeout_s)
        except ChannelClosed:
            self._exit_wait(0.2)
        return self.kill()

    def _drain_until_answer(self, deadline: float) -> None:
        # A child that prints more than the pipe holds would otherwise wait for us, and we for it.
        poller = select.poll()
        poller.register(self._channel.sock, select.POLLIN | select.POLLHUP)
        if not self.output.at_end:
            poller.register(self._output_fd, select.POLLIN | select.POLLHUP)
        while (left_s := deadline - time.monotonic()) > 0:
            ready = [fd for fd, _ in poller.poll(max(1, int(left_s * 1000)))]
            if self._output_fd in ready and self.output.drain():
                poller.unregister(self._output_fd)
            if self.output.over_limit:
                self.kill()
                raise ChildDied(self._exit, "it wrote more output than is allowed")
            if self._channel.sock.fileno() in ready:
                return

    def _exit_wait(self, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and self._exits.empty():
            time.sleep(0.002)

    def _enter(self) -> sandbox.CageReport:
        try:
            hello, _ = self._channel.receive(FORK_S)
        except (ChannelClosed, ChannelTimeout) as exc:
            self.kill()
            raise SandboxUnavailable(
                f"the child could not enter its cage ({exc}): {self.output.text()[-500:]}"
            ) from exc
        return sandbox.CageReport.from_json(hello["cage"])
