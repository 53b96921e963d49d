"""A command's side of a warm judge: find it or start it, ask it once."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import hotloop
from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.record import from_json, to_json
from hotloop.core.verdict import Tier, Verdict
from hotloop.errors import WorkerDied
from hotloop.sandbox.processes import kill_tree
from hotloop.verify.local import KEPT_VARIABLES
from hotloop.warm import wire
from hotloop.warm.watch import JudgeSilent

IDLE_S = 300.0
START_S = 60.0
LOCK_S = START_S + 10.0
SILENT_S = 10.0
"""A server that gives no sign of life for so long is stopped or hangs; it gives one a second."""
KILL_S = 5.0
POLL_S = 0.05
_CREDENTIALS = struct.Struct("3i")
"""pid, uid, gid: see SO_PEERCRED in unix(7)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One kernel to be judged."""

    problem: Problem
    candidate: Candidate
    tier: Tier
    short: bool = False


def verify_warm(
    request: Request,
    *,
    device: str,
    min_isolation: str,
    idle_s: float = IDLE_S,
    loaded: Callable[[ProblemInfo], None] = lambda info: None,
) -> Verdict:
    """Judge by the judge that an earlier call left, or by a new one that is left to the next.

    Args:
        request: what to judge.
        device: `cuda` or `cpu`.
        min_isolation: `T0`, `T1` or `T2`.
        idle_s: seconds without a call after which a new judge ends.
        loaded: called with what was found of the problem, before the kernel runs.

    Raises:
        ProblemError: the reference is broken.
        JudgeSilent: it does not answer, or fell silent; the candidate was not judged.
        InfraError: the machine is at fault; the candidate was not judged.
    """
    path = wire.socket_path(device, min_isolation, sys.executable, *_hotloop(), *_surroundings())
    words = ["--device", device, "--min-isolation", min_isolation, "--idle", f"{idle_s:g}"]
    with _connected(path, words) as connection:
        try:
            reply = _asked(connection, request, loaded)
        except TimeoutError:
            raise _ended(connection, path) from None
    if wire.SILENT in reply:
        raise JudgeSilent(f"the warm judge fell silent: {reply[wire.SILENT]}")
    if "error" in reply:
        wire.raise_error(reply)
    return from_json(Verdict, reply["verdict"])


def _asked(
    connection: socket.socket, request: Request, loaded: Callable[[ProblemInfo], None]
) -> dict[str, Any]:
    """Ask, and return the last answer.

    Raises:
        TimeoutError: not even a sign of life came.
        WorkerDied: the other side is gone.
    """
    record = {
        "problem": to_json(request.problem),
        "candidate": to_json(request.candidate),
        "tier": request.tier.value,
        "short": request.short,
    }
    try:
        wire.send(connection, record)
    except TimeoutError:
        raise
    except OSError as exc:
        raise WorkerDied(f"the warm judge is gone ({exc}); give the command again") from exc
    while True:
        reply: dict[str, Any] = wire.receive(connection)
        if "info" in reply:
            loaded(from_json(ProblemInfo, reply["info"]))
        elif wire.ALIVE not in reply:
            return reply


def _ended(connection: socket.socket, path: Path) -> JudgeSilent:
    """End a server that does not answer, so that the next call need not find that out again."""
    told = "the warm judge is there and does not answer"
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(data)
    path.unlink(missing_ok=True)
    is_ours = uid == os.getuid() and pid not in (0, os.getpid())
    if is_ours and kill_tree(pid, KILL_S):
        return JudgeSilent(f"{told}; it was ended (pid {pid})")
    return JudgeSilent(f"{told}; end it by hand (pid {pid})")


def _hotloop() -> tuple[str, str]:
    """Return which hotloop this is, and when its newest file was written: an edited one is new."""
    package = Path(hotloop.__file__).parent
    newest_ns = max(file.stat().st_mtime_ns for file in package.rglob("*.py"))
    return str(package), str(newest_ns)


def _surroundings() -> list[str]:
    """Return what a judge takes from the environment."""
    return [f"{name}={os.environ.get(name)}" for name in KEPT_VARIABLES]


@contextmanager
def _connected(path: Path, words: list[str]) -> Iterator[socket.socket]:
    with open(path.with_suffix(".lock"), "w") as lock:
        _take(lock)  # two commands at once start one judge
        connection = _connect(path)
        if connection is None:
            connection = _started(path, words)
    with connection:
        yield connection


def _take(lock: IO[str]) -> None:
    """Wait for the lock for as long as another command may need to start a judge."""
    deadline_s = time.monotonic() + LOCK_S
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline_s:
                raise JudgeSilent(
                    "another command has been starting a warm judge for too long"
                ) from None
            time.sleep(POLL_S)


def _connect(path: Path) -> socket.socket | None:
    """Return a connection to a server that said that it is there; None where there is none.

    Raises:
        JudgeSilent: there is one and it says nothing; it was ended.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(SILENT_S)
    try:
        connection.connect(str(path))
        wire.receive(connection)
    except BlockingIOError:  # others wait already, as many as may: nobody lets them in
        connection.close()
        path.unlink(missing_ok=True)
        raise JudgeSilent("the warm judge is there and takes no more calls") from None
    except TimeoutError:
        with connection:
            raise _ended(connection, path) from None
    except (OSError, WorkerDied):  # nobody, or the socket of one that was killed, or it just ended
        connection.close()
        return None
    return connection


def _started(path: Path, words: list[str]) -> socket.socket:
    log_path = path.with_suffix(".log")
    with open(log_path, "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "hotloop.warm.server", "--socket", str(path), *words],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # it outlives this command, and its Ctrl-C
        )
    deadline_s = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline_s:
        connection = _connect(path)
        if connection is not None:
            return connection
        time.sleep(POLL_S)
    if process.poll() is None:
        process.kill()
    lines = log_path.read_text(errors="replace").strip().splitlines()
    told = lines[-1][:300] if lines else "it said nothing"
    raise WorkerDied(f"the warm judge did not start: {told}; leave out --warm")
