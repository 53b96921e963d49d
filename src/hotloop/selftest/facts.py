"""What is true after an attack, looked up from outside: the only evidence that counts."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hotloop.sandbox import kernel
from hotloop.sandbox.processes import process_table
from hotloop.sandbox.spec import Limits

_PIDFD_GETFD = 438
_KERNEL_OBJECTS = ("io_uring", "userfaultfd", "bpf", "perf_event", "fanotify", "mqueue")
_FIELDS = ("Uid", "CapEff", "CapPrm", "TracerPid")


@dataclass(frozen=True, slots=True)
class Sight:
    """One look at a process and everything below it."""

    links: frozenset[str]
    """Namespaces and root folder."""
    status: dict[str, str]
    personality: str
    objects: frozenset[str]
    """Kernel objects and sockets other than Unix ones that it holds."""
    data_bytes: int
    open_files: int
    processes: int
    largest_file_bytes: int
    """Of those that it holds open, in memory or on disk."""


def look(pid: int) -> Sight:
    """Look at a process and its descendants; what has ended meanwhile shows nothing."""
    pids = [pid, *below(pid)]
    status = _status(pid)
    data = [int(_status(p).get("VmData", "0 kB").split()[0]) * 1024 for p in pids]
    files = [_count(f"/proc/{p}/fd") for p in pids]
    return Sight(
        links=frozenset(link for p in pids for link in _links(p)),
        status={name: status.get(name, "") for name in _FIELDS},
        personality=_text(f"/proc/{pid}/personality"),
        objects=frozenset(name for p in pids for name in _objects(p)),
        data_bytes=max(data),
        open_files=max(files),
        processes=sum(_count(f"/proc/{p}/task") for p in pids),
        largest_file_bytes=max(_largest_open(p) for p in pids),
    )


def gained(before: Sight, after: Sight, limits: Limits) -> list[str]:
    """Return what a process has now that its cage should have kept from it."""
    found = [f"in {link}" for link in sorted(after.links - before.links)]
    found += [f"holds {name}" for name in sorted(after.objects - before.objects)]
    for name in _FIELDS:
        if after.status[name] and after.status[name] != before.status[name]:
            found.append(f"{name} {before.status[name]} -> {after.status[name]}")
    if after.status["CapEff"].strip("0"):
        found.append(f"capabilities {after.status['CapEff']}")
    if after.personality and after.personality != before.personality:
        found.append(f"personality {after.personality}")
    bounds = (
        ("data_bytes", after.data_bytes - before.data_bytes, limits.data_bytes),
        ("open_files", after.open_files, limits.open_files),
        ("processes", after.processes - before.processes, limits.processes),
        ("file_bytes", after.largest_file_bytes, limits.file_bytes),
    )
    found += [f"{name} {used} over the limit {most}" for name, used, most in bounds if used > most]
    return found


def victim_state(pid: int) -> dict[str, Any]:
    """Return what an attack could change about a process."""
    with suppress(OSError):
        return {
            "state": _text(f"/proc/{pid}/stat").rsplit(")", 1)[-1].split()[0] in "TtZX",
            "nice": os.getpriority(os.PRIO_PROCESS, pid),
            "policy": os.sched_getscheduler(pid),
            "affinity": sorted(os.sched_getaffinity(pid)),
            "tracer": _status(pid).get("TracerPid"),
            "oom": _text(f"/proc/{pid}/oom_score_adj"),
            "limits": _text(f"/proc/{pid}/limits"),
        }
    return {"state": "gone"}


def lives(pid: int) -> bool:
    """Return whether a process exists and has not ended."""
    state = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return bool(state) and state[0] not in "ZX"


def children(pid: int) -> set[int]:
    """Return the living children of a process."""
    return {p.pid for p in process_table() if p.parent == pid and not p.zombie}


def below(pid: int) -> list[int]:
    """Return the living descendants of a process, oldest first."""
    table = process_table()
    found, queue = [], [pid]
    while queue:
        parent = queue.pop(0)
        children = sorted((p for p in table if p.parent == parent), key=lambda p: p.start)
        found += [p.pid for p in children if not p.zombie]
        queue += [p.pid for p in children]
    return found


def largest_file(folder: str) -> int:
    """Return the size in bytes of the largest file in a folder."""
    with os.scandir(folder) as entries:
        return max((e.stat(follow_symlinks=False).st_size for e in entries), default=0)


def _links(pid: int) -> list[str]:
    names = [f"/proc/{pid}/ns/{n}" for n in ("user", "pid", "net", "ipc", "mnt", "uts")]
    found = []
    for name in names:
        with suppress(OSError):
            found.append(os.readlink(name))
    with suppress(OSError):
        found.append(f"root folder {os.readlink(f'/proc/{pid}/root')}")
    return found


def _objects(pid: int) -> list[str]:
    found = []
    with suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                link = os.readlink(f"/proc/{pid}/fd/{name}")
                if any(kind in link for kind in _KERNEL_OBJECTS):
                    found.append(link)
                elif link.startswith("socket:"):
                    found += _foreign_socket(pid, int(name))
    return found


def _foreign_socket(pid: int, fd: int) -> list[str]:
    """Name a socket of a process unless it is a connected pair of Unix stream sockets."""
    pidfd = os.pidfd_open(pid)
    try:
        with socket.socket(fileno=kernel.syscall(_PIDFD_GETFD, pidfd, fd, 0)) as copy:
            if copy.family == socket.AF_UNIX and copy.type != socket.SOCK_DGRAM:
                return []
            return [f"{copy.family!r} {copy.type!r} socket"]
    finally:
        os.close(pidfd)


def _largest_open(pid: int) -> int:
    sizes = [0]
    with suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                sizes.append(os.stat(f"/proc/{pid}/fd/{name}").st_size)
    return max(sizes)


def _status(pid: int) -> dict[str, str]:
    lines = _text(f"/proc/{pid}/status").splitlines()
    return {k: v.strip() for k, v in (x.split(":", 1) for x in lines if ":" in x)}


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _count(folder: str) -> int:
    try:
        return len(os.listdir(folder))
    except OSError:
        return 0
