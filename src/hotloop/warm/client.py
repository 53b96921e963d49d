"""A command's side of a warm judge: find it or start it, ask it once."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import hotloop
from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.record import from_json, to_json
from hotloop.core.verdict import Tier, Verdict
from hotloop.errors import WorkerDied
from hotloop.verify.local import KEPT_VARIABLES
from hotloop.warm import wire

IDLE_S = 300.0
START_S = 60.0
POLL_S = 0.05


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
        InfraError: the machine is at fault; the candidate was not judged.
    """
    path = wire.socket_path(device, min_isolation, sys.executable, *_hotloop(), *_surroundings())
    words = ["--device", device, "--min-isolation", min_isolation, "--idle", f"{idle_s:g}"]
    with _connected(path, words) as connection:
        wire.send(
            connection,
            {
                "problem": to_json(request.problem),
                "candidate": to_json(request.candidate),
                "tier": request.tier.value,
                "short": request.short,
            },
        )
        reply = wire.receive(connection)
        if "info" in reply:
            loaded(from_json(ProblemInfo, reply["info"]))
            reply = wire.receive(connection)
    if "error" in reply:
        wire.raise_error(reply)
    return from_json(Verdict, reply["verdict"])


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
        fcntl.flock(lock, fcntl.LOCK_EX)  # two commands at once start one judge
        connection = _connect(path)
        if connection is None:
            connection = _started(path, words)
    with connection:
        yield connection


def _connect(path: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(path))
    except OSError:  # nobody is there, or only the socket of one that was killed
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
