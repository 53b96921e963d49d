"""The two expendable processes of a case: a victim, and its child that enters the cage and attacks.

The victim stands for the process that forks candidates. It holds a secret in memory that its child
never had, an open file that its child must not keep, and answers as long as it is unharmed.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import secrets
import select
import signal
import socket
import traceback
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

from hotloop.errors import HotloopError
from hotloop.sandbox import environment, kernel
from hotloop.sandbox.cage import enter
from hotloop.sandbox.spec import CageSpec
from hotloop.selftest.case import Program, Target

MESSAGE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """What the two processes are to do, and over which descriptors they talk."""

    program: Program
    spec: CageSpec
    caged: bool
    uid: int | None
    planted: dict[str, Any]
    output: int
    victim_end: socket.socket
    attacker_end: socket.socket


def send(sock: socket.socket, message: dict[str, Any]) -> None:
    """Send one message."""
    sock.send(json.dumps(message).encode())


def be_victim(part: Part) -> NoReturn:
    """Fork the attacker; answer pings until the other end closes."""
    with suppress(BaseException):
        kernel.close_descriptors_except(
            {0, 2, part.output, part.victim_end.fileno(), part.attacker_end.fileno()}
        )
        os.dup2(part.output, 1)  # else what is opened next would become standard output
        os.setsid()
        if part.uid is not None:
            os.setgroups([])
            os.setresgid(part.uid, part.uid, part.uid)
            os.setresuid(part.uid, part.uid, part.uid)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        kept = os.open(f"{part.planted['hidden']}/secret", os.O_RDONLY)
        os.set_inheritable(kept, True)
        memory = ctypes.create_string_buffer(64)
        own = os.getpid()
        target = Target(victim=own, address=ctypes.addressof(memory), **part.planted)
        child = os.fork()
        if child == 0:
            _be_attacker(part, target)
        part.attacker_end.close()
        memory.value = secrets.token_hex(16).encode()
        send(part.victim_end, {"attacker": child, "memory": memory.value.decode()})
        _answer(part.victim_end, child, memory)
    os._exit(1)


def _answer(sock: socket.socket, child: int, memory: ctypes.Array[ctypes.c_char]) -> None:
    pidfd = os.pidfd_open(child)
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    poll.register(pidfd, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == pidfd:
                _, status = os.waitpid(child, 0)
                poll.unregister(pidfd)
                send(sock, {"status": status})
            elif not sock.recv(MESSAGE_BYTES):
                os._exit(0)
            else:
                send(sock, {"memory": memory.value.decode("latin-1")})


def _be_attacker(part: Part, target: Target) -> NoReturn:
    code = 70
    try:
        os.dup2(part.output, 1)
        os.dup2(part.output, 2)
        scrubbed = environment.scrubbed_environment(part.spec.work_dir)
        os.environ.clear()
        os.environ.update(scrubbed)
        sock = part.attacker_end
        missing: tuple[str, ...] = ()
        if part.caged:
            report = enter(part.spec, keep_fds=(1, 2, sock.fileno()), parent_pid=target.victim)
            missing = report.missing
        else:
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
            os.chdir(part.spec.work_dir)
            os.mkdir(environment.temporary_folder("."))
            _, hard = resource.getrlimit(resource.RLIMIT_CORE)
            resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
        send(sock, {"ready": True, "missing": missing})
        sock.recv(MESSAGE_BYTES)
        part.program(target)
        send(sock, {"steps": target.steps})
        sock.recv(MESSAGE_BYTES)
        code = 0
    except HotloopError as exc:
        send(part.attacker_end, {"refused": str(exc)})
    except BaseException:  # noqa: BLE001  a broken program must not look like a refused attack
        send(part.attacker_end, {"broken": traceback.format_exc()[-2000:]})
    finally:
        os._exit(code)
