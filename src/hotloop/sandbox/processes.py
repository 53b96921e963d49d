"""Finding and ending processes: a whole tree, and the daemons that it left behind.

A candidate that forks twice and starts a session leaves the process group and the parent that we
know. It cannot leave a subreaper: an orphan becomes that process's child, where `sweep` finds it.
Every signal goes through a pidfd whose start time was checked, so a reused number is never hit.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections import defaultdict
from collections.abc import Collection
from contextlib import suppress
from typing import NamedTuple

from hotloop.errors import InfraError
from hotloop.sandbox import kernel

_POLL_S = 0.005
_STAT_BYTES = 4096
"""More than one line of /proc/PID/stat has."""


class Process(NamedTuple):
    """One row of the process table: `start` (clock ticks since boot) tells reused numbers apart."""

    pid: int
    parent: int
    start: int
    zombie: bool


def become_subreaper() -> None:
    """Make this process the parent of every orphan among its descendants.

    Raises:
        OSError: the kernel refused.
    """
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)


def kill_tree(pid: int, timeout_s: float = 15.0) -> bool:
    """Kill a process, its group if it leads one, and all its descendants.

    Args:
        pid: a child of the caller, which still has to reap it.
        timeout_s: how long to wait for its death. A process inside a GPU driver can outlast any.

    Returns:
        Whether the process is dead and no descendant of it was left in the last look.
    """
    deadline = time.monotonic() + timeout_s
    try:
        root = os.pidfd_open(pid)
    except ProcessLookupError:
        _kill_group(pid)
        return True
    try:
        while True:
            children = descendants(pid)
            _stop_all(pid, children)
            for process in children:
                _signal(process, signal.SIGKILL)
            _kill_group(pid)
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(root, signal.SIGKILL)
            left = any(not p.zombie for p in descendants(pid))
            if _is_dead(root, _POLL_S if left else deadline - time.monotonic()) and not left:
                return True
            if time.monotonic() >= deadline:
                return False
    finally:
        os.close(root)


def sweep(keep: Collection[int] = (), *, timeout_s: float = 5.0) -> int:
    """Kill and reap every child of this process that is not in `keep`, with its descendants.

    Meant for a subreaper between two evaluations: what it finds then was left by a candidate.

    Args:
        keep: children to spare; name every one that is still wanted.
        timeout_s: bound for the whole sweep.

    Returns:
        How many processes were killed; those that had ended already are reaped, not counted.

    Raises:
        InfraError: something was still alive at the end; the machine needs a look.
    """
    deadline = time.monotonic() + timeout_s
    killed: set[tuple[int, int]] = set()
    while True:
        table = process_table()
        strays = [p for p in table if p.parent == os.getpid() and p.pid not in keep]
        if not strays:
            return len(killed)
        if time.monotonic() >= deadline:
            pids = sorted(p.pid for p in strays)
            raise InfraError(f"expected to end processes {pids}, they live after {timeout_s} s")
        doomed = [p for s in strays for p in (s, *_below(s.pid, table)) if not p.zombie]
        killed |= {(p.pid, p.start) for p in doomed}
        for process in doomed:
            _signal(process, signal.SIGKILL)
        for stray in strays:
            _reap(stray.pid, deadline)


def living_below(pid: int) -> frozenset[int]:
    """Return the numbers of the descendants of `pid` that have not ended."""
    return frozenset(process.pid for process in descendants(pid) if not process.zombie)


def process_table() -> list[Process]:
    """Return the processes that /proc shows."""
    found = (_read(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return [process for process in found if process is not None]


def descendants(pid: int) -> list[Process]:
    """Return the children of `pid`, their children, and so on."""
    return _below(pid, process_table())


def _below(pid: int, table: list[Process]) -> list[Process]:
    children = defaultdict(list)
    for process in table:
        children[process.parent].append(process)
    found: list[Process] = []
    queue = [pid]
    while queue:
        below = children.pop(queue.pop(), [])
        found += below
        queue += [p.pid for p in below]
    return found


def _read(pid: int) -> Process | None:
    """Return one row of the process table; None when the process has gone since it was listed."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        text = os.read(fd, _STAT_BYTES)  # a file object costs more than the read
    except OSError:
        return None
    finally:
        os.close(fd)
    # The name may hold spaces and brackets: the fields start after the last bracket.
    fields = text[text.rindex(b")") + 2 :].split()
    # One whose first thread has ended looks like a zombie, and lives by its others.
    ended = fields[0] in (b"Z", b"X") and int(fields[17]) <= 1
    return Process(pid, int(fields[1]), int(fields[19]), ended)


def _signal(process: Process, number: signal.Signals) -> None:
    try:
        fd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        now = _read(process.pid)
        if now is not None and now.start == process.start:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(fd, number)
    finally:
        os.close(fd)


def _stop_all(pid: int, children: list[Process]) -> None:
    """Freeze a tree first, so that it cannot fork faster than it is killed."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    for process in children:
        if not process.zombie:
            _signal(process, signal.SIGSTOP)


def _kill_group(pid: int) -> None:
    """Kill the group that `pid` leads, never our own."""
    if pid != os.getpgrp():
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def _is_dead(pidfd: int, timeout_s: float) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(max(0.0, timeout_s) * 1000))


def _reap(pid: int, deadline: float) -> None:
    while time.monotonic() < deadline:
        try:
            done, _ = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return  # someone else reaped it
        if done:
            return
        time.sleep(_POLL_S)
