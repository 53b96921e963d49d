"""Bombs: processes, threads, memory, files, descriptors. Each is bounded, against small limits."""

from __future__ import annotations

import mmap
import os
import signal
import threading
import time

from hotloop.core.units import GIB, MIB
from hotloop.sandbox.spec import Limits
from hotloop.selftest.case import Case, Expect, Target, write

_FORKS, _THREADS, _COPIES = 200, 200, 300
_DEPTH = 1500
_ENDLESS_S = 1000
_FEW_PROCESSES = Limits(processes=24)
_LITTLE_MEMORY = Limits(data_bytes=256 * MIB)
_SMALL_FILES = Limits(file_bytes=MIB)
_FEW_FILES = Limits(open_files=64)

_held: list[object] = []


def fork_bomb(target: Target) -> None:
    """Fork until refused."""

    def fork() -> None:
        if os.fork() == 0:
            time.sleep(_ENDLESS_S)

    for _ in range(_FORKS):
        target.attempt("fork", fork)


def thread_bomb(target: Target) -> None:
    """Start threads until refused."""

    def start() -> None:
        try:
            threading.Thread(target=time.sleep, args=(_ENDLESS_S,), daemon=True).start()
        except RuntimeError as exc:
            raise OSError(11, str(exc)) from exc

    threading.stack_size(1 << 16)
    for _ in range(_THREADS):
        target.attempt("thread", start)


def heap_bomb(target: Target) -> None:
    """Take private memory until refused; none of it is touched."""
    for _ in range(32):
        target.attempt("heap", lambda: _held.append(mmap.mmap(-1, 32 * MIB, flags=0x22)))
    target.attempt("at once", lambda: _held.append(bytearray(2 * GIB)))


def file_bomb(target: Target) -> None:
    """Make a large file: by writing, by a hole, by asking for room."""

    def at(name: str) -> int:
        return os.open(name, os.O_CREAT | os.O_RDWR)

    target.attempt_all(
        {
            "write": lambda: [os.write(fd, bytes(MIB)) for fd in [at("a")] * 3],
            "hole": lambda: os.truncate(at("b"), 10 * GIB),
            "write behind a hole": lambda: os.pwrite(at("c"), b"x", 10 * GIB),
            "room": lambda: os.posix_fallocate(at("d"), 0, 4 * MIB),
        }
    )


def descriptor_bomb(target: Target) -> None:
    """Copy descriptors until refused."""
    for _ in range(_COPIES):
        target.attempt("copy", lambda: os.dup(1))


def deep_folders(target: Target) -> None:
    """Make folders so deep that a path to the last one is longer than the kernel takes."""
    for _ in range(_DEPTH):
        os.mkdir("a" * 20)
        os.chdir("a" * 20)
    target.attempt("file at the end", lambda: write("end"))


def memory_file_bomb(target: Target) -> None:
    """Make a large file that lies in memory only."""
    memory = os.memfd_create("bomb")
    target.attempt("size", lambda: os.truncate(memory, 64 * MIB))
    target.attempt("content", lambda: os.pwrite(memory, b"x", 64 * MIB))


def spin_processor(_: Target) -> None:
    """Use processor time without end."""
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    while True:
        pass


CASES = (
    Case(17, "fork bomb", (fork_bomb,), limits=_FEW_PROCESSES, needs="counted", safe=False),
    Case(18, "thread bomb", (thread_bomb,), limits=_FEW_PROCESSES, needs="counted", safe=False),
    Case(19, "heap bomb", (heap_bomb,), limits=_LITTLE_MEMORY),
    Case(20, "large file in memory", (memory_file_bomb,), limits=_SMALL_FILES),
    Case(21, "large files", (file_bomb,), limits=_SMALL_FILES),
    Case(22, "deep folders", (deep_folders,), safe=False),
    Case(23, "many descriptors", (descriptor_bomb,), limits=_FEW_FILES),
    Case(
        44, "processor time", (spin_processor,), expect=Expect.CRASHED, deadline_s=8.0,
        limits=Limits(cpu_s=1), safe=False,
    ),
)  # fmt: skip
