"""The attacks of the canaries, and the sacrificial process that they aim at.

`main` runs in a fresh interpreter with a secret in its environment. It opens a port and forks one
child for each cage, which enters it and attacks. A child answers on standard output by itself, so
an attack that hurts the parent cannot swallow the answer. An attack may import nothing once inside:
a refusal must come from the cage, not from a module that cannot be read.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from hotloop.errors import HotloopError
from hotloop.sandbox import kernel
from hotloop.sandbox.cage import enter
from hotloop.sandbox.spec import CageSpec

_PTRACE, _PTRACE_SEIZE = 101, 0x4206
_STDOUT, _STDERR = 1, 2
_PATIENCE_S = 2.0


class Target(NamedTuple):
    """What the attacks aim at."""

    pid: int
    port: int
    hidden: str
    token: str
    left: str


def main() -> NoReturn:
    """Read the order from standard input, fork the attackers, wait for them."""
    order = json.load(sys.stdin)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    listener = socket.create_server(("127.0.0.1", 0))
    planted = (order["hidden"], order["token"], order["left"])
    target = Target(os.getpid(), listener.getsockname()[1], *planted)
    specs = [CageSpec.from_json(spec) for spec in order["specs"]]
    children = []
    for spec in specs:
        child = os.fork()
        if child == 0:
            _attack(spec, target)
        children.append(child)
    os.close(_STDOUT)
    for child in children:
        os.waitpid(child, 0)
    os._exit(0)


def _attack(spec: CageSpec, target: Target) -> NoReturn:
    try:
        enter(spec, keep_fds=(_STDOUT, _STDERR), parent_pid=target.pid)
        answer: dict[str, Any] = {"succeeded": [n for n, a in ATTACKS.items() if _works(a, target)]}
    except (HotloopError, OSError) as exc:
        answer = {"error": str(exc)}
    os.write(_STDOUT, json.dumps(answer).encode() + b"\n")  # one write: lines never mix
    os._exit(0)


def _works(attack: Callable[[Target], bool], target: Target) -> bool:
    try:
        return attack(target)
    except OSError:
        return False  # refused, which is what a cage is for


def _read_file(target: Target) -> bool:
    with open(os.path.join(target.hidden, "secret"), "rb") as file:
        return file.read() == target.token.encode()


def _write_outside(target: Target) -> bool:
    with open(os.path.join(target.hidden, "open", "mark"), "wb"):
        return True


def _leave_file(target: Target) -> bool:
    with open(target.left, "wb"):
        return False  # it may be a private folder: whether it is there is looked up from outside


def _read_environment(target: Target) -> bool:
    # Our own parent may be the init process of a pid namespace, which carries the secret as well.
    return any(_environment_has(pid, target.token) for pid in {target.pid, os.getppid()})


def _environment_has(pid: int, token: str) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return token.encode() in file.read()
    except OSError:
        return False


def _connect_tcp(target: Target) -> bool:
    # Not create_connection: it imports a codec, which fails here for a reason that proves nothing.
    with socket.socket() as client:
        client.settimeout(_PATIENCE_S)
        client.connect(("127.0.0.1", target.port))
        return True


def _limit_parent(target: Target) -> bool:
    resource.prlimit(target.pid, resource.RLIMIT_CORE, (0, 0))
    return True


def _renice_parent(target: Target) -> bool:
    os.setpriority(os.PRIO_PROCESS, target.pid, 10)
    return True


def _pin_parent(target: Target) -> bool:
    os.sched_setaffinity(target.pid, os.sched_getaffinity(0))
    return True


def _signal_parent(target: Target) -> bool:
    os.kill(target.pid, signal.SIGCONT)
    return True


def _trace_parent(target: Target) -> bool:
    # Seizing asks for the same permission as attaching, but does not stop the target.
    kernel.syscall(_PTRACE, _PTRACE_SEIZE, target.pid, 0, 0)
    return True


ATTACKS: dict[str, Callable[[Target], bool]] = {
    "read_file": _read_file,
    "write_outside": _write_outside,
    "leave_file": _leave_file,
    "read_environment": _read_environment,
    "connect_tcp": _connect_tcp,
    "limit_parent": _limit_parent,
    "renice_parent": _renice_parent,
    "pin_parent": _pin_parent,
    "signal_parent": _signal_parent,
    "trace_parent": _trace_parent,
}
