"""The judge's side of the zygote: start it, ask it to fork, hear how its children ended.

The zygote is trusted: its death, or its silence, is this machine's fault. What its children say
goes past it, over a channel of their own (`children.py`).
"""

from __future__ import annotations

import itertools
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop import sandbox
from hotloop.errors import HotloopError, WorkerDied, WorkerTimeout
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
        self._exits: dict[int, queue.Queue[Exit | None]] = {}
        self._ready = threading.Event()
        self._failed: HotloopError | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def fork(
        self, role: str, spec: sandbox.CageSpec, env: Mapping[str, str], fds: Sequence[int]
    ) -> tuple[int, queue.Queue[Exit | None]]:
        """Start a child; return its pid and the queue that its exit will arrive on.

        None arrives there when the zygote ends first: how the child ended is not known then.

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

    def forget(self, pid: int) -> None:
        """Drop the exit of a child that has ended: its number may come again."""
        with self._lock:
            self._exits.pop(pid, None)

    def close(self) -> None:
        """End the zygote and its children. Idempotent."""
        self._channel.close()
        if not self._ready.is_set():
            self._process.kill()  # it only imports yet, and listens to nobody
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
                    exits.put(_exit_of(message["status"]))
                elif message.get("id") in self._replies:
                    self._replies.pop(message["id"]).put(message)

    def _fail_waiters(self) -> None:
        with self._lock:
            for reply in self._replies.values():
                reply.put({})
            for exits in self._exits.values():
                exits.put(None)


def _exit_of(status: int) -> Exit:
    if os.WIFSIGNALED(status):
        return Exit(None, os.WTERMSIG(status))
    return Exit(os.WEXITSTATUS(status), None)
