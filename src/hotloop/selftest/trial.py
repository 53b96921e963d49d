"""One program in one cage: start it, watch it until its end or its deadline, end everything."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
from contextlib import suppress
from typing import Any

from hotloop.core.units import MIB
from hotloop.errors import InfraError, SandboxUnavailable
from hotloop.sandbox import processes
from hotloop.sandbox.output import OutputCollector
from hotloop.sandbox.spec import CageSpec, Tier
from hotloop.selftest import facts
from hotloop.selftest.case import Case, Program
from hotloop.selftest.scene import Scene
from hotloop.selftest.victim import MESSAGE_BYTES, Part, be_victim, send

_START_S = 10.0
_ANSWER_S = 1.0
_OUTPUT_LIMIT = 16 * MIB


class Trial:
    """One run of a program, and what was seen of it; read the attributes after `run`."""

    def __init__(self, case: Case, spec: CageSpec, scene: Scene, order: dict[str, Any]) -> None:
        self.case, self.spec, self.scene = case, spec, scene
        self.caged: bool = order["caged"]
        self._uid: int | None = order["uid"]
        self.steps: dict[str, str] = {}
        self.missing: list[str] = []
        self.end = "killed"
        self.wall_s = 0.0
        self.said = ""
        self.memory = ("", "")
        self.core_dumped = False
        self.outlived = False
        self.siblings = 0
        self.left: list[int] = []
        self.files: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        self.sight: tuple[facts.Sight, facts.Sight] | None = None
        self.state: tuple[dict[str, Any], dict[str, Any]] = ({}, {})

    def run(self, program: Program) -> None:
        """Run a program to its end.

        Raises:
            SandboxUnavailable: the cage could not be entered.
            InfraError: the victim did not start.
        """
        reader, writer = os.pipe()
        our_victim, victim_end = socket.socketpair(type=socket.SOCK_SEQPACKET)
        our_attacker, attacker_end = socket.socketpair(type=socket.SOCK_SEQPACKET)
        part = Part(
            program, self.spec, self.caged, self._uid, self._planted(), writer, victim_end,
            attacker_end,
        )  # fmt: skip
        victim = os.fork()
        if victim == 0:
            be_victim(part)
        os.close(writer)
        victim_end.close()
        attacker_end.close()
        self._output = OutputCollector(reader, limit_bytes=_OUTPUT_LIMIT)
        try:
            with our_victim, our_attacker:
                self._watch(victim, our_victim, our_attacker)
        finally:
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
            processes.sweep((self.scene.bearer.pid,))
            self._output.drain()
            os.close(reader)
        self.said = self._output.text()
        self.left = [p for p in facts.below(os.getpid()) if p != self.scene.bearer.pid]

    def _planted(self) -> dict[str, Any]:
        scene = self.scene
        return {
            "bearer": scene.bearer.pid, "hidden": scene.hidden, "allowed": scene.allowed,
            "tcp_port": scene.tcp.getsockname()[1], "udp_port": scene.udp.getsockname()[1],
            "abstract": scene.abstract, "mark": scene.mark,
        }  # fmt: skip

    def _watch(self, victim: int, our_victim: socket.socket, ours: socket.socket) -> None:
        started = _receive(our_victim, _START_S)
        ready = _receive(ours, _START_S)
        if started is None or ready is None:
            raise InfraError(f"expected a victim and an attacker, got {started} and {ready}")
        if "ready" not in ready:
            raise SandboxUnavailable(str(ready.get("refused", ready)))
        self.missing = ready["missing"]
        top = started["attacker"]
        inner = self._inner(top)
        sight = facts.look(inner)
        state, files = facts.victim_state(victim), self.scene.snapshot()
        start = time.monotonic()
        pidfd = os.pidfd_open(top)  # before it can end
        try:
            send(ours, {"go": True})
            self._wait(ours, pidfd, start + self.case.deadline_s)
        finally:
            os.close(pidfd)
        self.sight = (sight, facts.look(inner))
        self.siblings = len(facts.children(victim) - {top})
        if self.end in ("killed", "capped"):
            processes.kill_tree(top, 5.0)
        self.wall_s = time.monotonic() - start
        self.state = (state, facts.victim_state(victim))
        self.files = (files, self.scene.snapshot())
        self._ask_victim(our_victim, started["memory"])
        self._end_victim(victim, inner)

    def _inner(self, top: int) -> int:
        """Return the caged process: at T2 it is the grandchild of the one that was forked."""
        if not self.caged or self.spec.tier is not Tier.NAMESPACES:
            return top
        return facts.below(top)[1]

    def _wait(self, ours: socket.socket, pidfd: int, deadline: float) -> None:
        poll = select.poll()
        for fd in (ours.fileno(), pidfd, self._output.fileno()):
            poll.register(fd, select.POLLIN)
        while (left_s := deadline - time.monotonic()) > 0:
            ready = {fd for fd, _ in poll.poll(left_s * 1000)}
            if self._output.fileno() in ready and self._output.drain():
                poll.unregister(self._output.fileno())
            if self._output.over_limit:
                self.end = "capped"
                return
            if ours.fileno() in ready and self._hear(ours):
                return
            if pidfd in ready:
                self.end = "ended"
                return

    def _hear(self, ours: socket.socket) -> bool:
        """Take a message of the program; anything but its report is ignored, as noise is."""
        message = _receive(ours, 0.0)
        if message is None:
            return False
        if "broken" in message:
            self.end = f"broken: {message['broken']}"
        elif isinstance(message.get("steps"), dict):
            self.end, self.steps = "done", message["steps"]
        return self.end != "killed"

    def _ask_victim(self, sock: socket.socket, planted: str) -> None:
        """Ask the victim whether it lives and what its memory holds; learn how the child ended."""
        self.memory = (planted, "no answer")
        with suppress(OSError):
            send(sock, {"ping": True})
        while self.end == "ended" or self.memory[1] == "no answer":
            message = _receive(sock, _ANSWER_S)
            if message is None:
                return
            if "status" in message and self.end == "ended":
                status = message["status"]
                self.core_dumped = os.WCOREDUMP(status)
                self.end = f"exit code {os.waitstatus_to_exitcode(status)}"
            if "memory" in message:
                self.memory = (planted, message["memory"])

    def _end_victim(self, victim: int, inner: int) -> None:
        """Kill the victim; its child must not live on."""
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        limit = time.monotonic() + _ANSWER_S
        while (facts.lives(inner) or facts.lives(victim)) and time.monotonic() < limit:
            time.sleep(0.002)
        self.outlived = facts.lives(inner)


def _receive(sock: socket.socket, timeout_s: float) -> dict[str, Any] | None:
    """Return the next message, or None where none came in time or it was not one of ours."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    if not poll.poll(timeout_s * 1000):
        return None
    try:
        message = json.loads(sock.recv(MESSAGE_BYTES))
    except (ValueError, OSError):
        return None
    return message if isinstance(message, dict) else None
