"""The judge's side of its children: ask them, watch them, end them.

A `Child` is an untrusted process behind a channel. Every wait has a deadline; a child that misses
it is killed with all its descendants. What it wrote to stdout and stderr is kept, capped.
"""

from __future__ import annotations

import os
import queue
import select
import time
from collections.abc import Mapping, Sequence
from typing import Any

from hotloop import sandbox
from hotloop.errors import HotloopError, SandboxUnavailable, WorkerDied, WorkerTimeout
from hotloop.worker.channel import Channel, ChannelClosed, ChannelTimeout, FrameTooLarge
from hotloop.worker.forking import FORK_S, Exit, Zygote

KILL_S = 15.0
ABANDON_S = 1.0
"""For the word of the zygote on a child that did not die within `KILL_S`."""


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
        except HotloopError:
            ours.close()
            os.close(read_end)
            raise
        finally:
            theirs.close()
            os.close(write_end)
        self._channel = ours
        self._zygote = zygote
        self._exit: Exit | None = None
        self._closed = False
        self._output_fd = read_end
        self.output = sandbox.OutputCollector(read_end)
        self.cage = self._enter()
        # At T2 the caged process lies below two of ours, and nothing untrusted has run in it yet.
        self._own = sandbox.living_below(self.pid) if self.cage.namespaces else frozenset()

    def request(self, message: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """Send one request and return the answer; see `exchange`."""
        answer, fds = self.exchange(message, timeout_s)
        for fd in fds:  # nobody asked for descriptors
            os.close(fd)
        return answer

    def exchange(
        self, message: Mapping[str, Any], timeout_s: float, fds: Sequence[int] = ()
    ) -> tuple[dict[str, Any], list[int]]:
        """Send one request, with descriptors if any; return the answer and those that came with it.

        What came is untrusted, and the caller's to close.

        Raises:
            ChildTimeout: no answer within the deadline; the child was killed.
            ChildDied: it ended, or sent something that is no answer.
            WorkerDied: the zygote ended, and the child with it.
        """
        deadline = time.monotonic() + timeout_s
        try:
            self._channel.send(message, fds)
            self._drain_until_answer(deadline)
            return self._channel.receive(max(0.001, deadline - time.monotonic()))
        except ChannelTimeout:
            self.kill()
            raise ChildTimeout(f"no answer within {timeout_s:.0f} s") from None
        except ChannelClosed as exc:
            self.kill()
            raise ChildDied(self._exit, str(exc)) from exc
        except FrameTooLarge as exc:
            raise ChildDied(None, str(exc)) from exc

    def left_running(self) -> int:
        """Return how many processes live below the child that are not its own known ones."""
        return len(sandbox.living_below(self.pid) - self._own)

    def kill(self) -> Exit | None:
        """Kill the child with everything below it and wait for its end. Idempotent.

        Returns:
            How it ended; None when it has not: a process inside a GPU driver can outlast a signal.

        Raises:
            WorkerDied: the zygote ended; the first call only.
            WorkerTimeout: the child is dead and the zygote says nothing; the first call only.
        """
        if self._closed:
            return self._exit
        self._closed = True
        has_died = sandbox.kill_tree(self.pid, timeout_s=KILL_S)
        try:
            self._exit = self._exits.get(timeout=KILL_S if has_died else ABANDON_S)
            self._zygote.forget(self.pid)
            if self._exit is None:
                raise WorkerDied("the zygote ended while a child was running; start again")
        except queue.Empty:
            if has_died:  # no matter of the GPU: the zygote is slow or stuck
                raise WorkerTimeout("the zygote does not say how a child ended") from None
        finally:
            self.output.drain()
            os.close(self._output_fd)
            self._channel.close()
        return self._exit

    def close(self, timeout_s: float = 3.0) -> Exit | None:
        """Let the child end by itself, then make sure that it has."""
        if self._closed:
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
