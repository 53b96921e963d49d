"""Attacks on other processes: reading, steering, signalling, and outliving them."""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import signal
import struct
import time
from functools import partial

from hotloop.sandbox import kernel
from hotloop.selftest.case import Case, Expect, Target, read, say

_PTRACE, _TRACEME, _ATTACH = 101, 0, 16
_PROCESS_VM_READV, _PROCESS_VM_WRITEV, _PIDFD_GETFD = 310, 311, 438
_TGKILL, _SCHED_SETATTR, _IOPRIO_SET = 234, 314, 251
_F_SETSIG = 10
_IDLE_CLASS = 3 << 13
_SECRET_BYTES = 32
_ENDLESS_S = 1000


def trace(target: Target) -> None:
    """Trace the parent, and ask the parent to trace."""
    target.attempt("attach", lambda: kernel.syscall(_PTRACE, _ATTACH, target.victim, 0, 0))
    target.attempt("be traced", lambda: kernel.syscall(_PTRACE, _TRACEME, 0, 0, 0))


def read_memory(target: Target) -> None:
    """Read and change the memory and the descriptors of the parent."""
    ours = kernel.buffer(bytes(_SECRET_BYTES))
    here = kernel.buffer(struct.pack("PN", kernel.address_of(ours), _SECRET_BYTES))
    there = kernel.buffer(struct.pack("PN", target.address, _SECRET_BYTES))
    vectors = (kernel.address_of(here), 1, kernel.address_of(there), 1, 0)

    def by_file(flags: int) -> int:
        return os.open(f"/proc/{target.victim}/mem", flags)

    def by_call() -> bytes:
        kernel.syscall(_PROCESS_VM_READV, target.victim, *vectors)
        return ours.raw

    def descriptor() -> bytes:
        pidfd = os.pidfd_open(target.victim)
        for fd in range(3, 20):
            target.steps[f"descriptor {fd}"] = "tried"
            copy = kernel.syscall(_PIDFD_GETFD, pidfd, fd, 0)
            try:
                say(os.pread(copy, 99, 0))
            except OSError:
                os.close(copy)
        return b""

    target.attempt_all(
        {
            "read by call": by_call,
            "read by file": lambda: os.pread(by_file(os.O_RDONLY), _SECRET_BYTES, target.address),
            "maps": lambda: read(f"/proc/{target.victim}/maps")[:0],
            "descriptor": descriptor,
            "write by call": lambda: kernel.syscall(_PROCESS_VM_WRITEV, target.victim, *vectors),
            "write by file": lambda: os.pwrite(by_file(os.O_RDWR), b"changed", target.address),
        }
    )


def read_environments(target: Target) -> None:
    """Look for a planted key in the environment of every process, ours too."""
    for name in (*os.listdir("/proc"), "self"):
        if name.isdigit() or name == "self":
            target.attempt("any environment", partial(_planted_key, name))
    target.attempt("bearer", partial(_planted_key, str(target.bearer)))
    say("\n".join(value for name, value in os.environ.items() if name.startswith("HOTLOOP")))


def _planted_key(pid: str) -> bytes:
    environment = read(f"/proc/{pid}/environ")
    return environment if b"HOTLOOP_PLANTED" in environment else b""


def traverse(target: Target) -> None:
    """Reach files through the descriptors, the root and the folder of another process."""
    for pid in (target.victim, target.bearer):
        base = f"/proc/{pid}"
        target.attempt("root", partial(read, f"{base}/root{target.hidden}/secret"))
        target.attempt("folder", partial(os.listdir, f"{base}/cwd/"))
        for fd in range(3, 12):
            target.attempt("descriptor", partial(_peek, f"{base}/fd/{fd}"))


def _peek(path: str) -> bytes:
    return os.read(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 99)


def send_signals(target: Target) -> None:
    """Stop and kill the parent and the bearer, in every way there is."""
    for pid in (target.bearer, target.victim):  # we die with the victim
        target.attempt_all(
            {
                "stop": partial(os.kill, pid, signal.SIGSTOP),
                "by thread": partial(kernel.syscall, _TGKILL, pid, pid, signal.SIGXCPU),
                "by descriptor": partial(_signal_by_descriptor, pid),
                "by file owner": partial(_signal_by_file, pid),
                "kill": partial(os.kill, pid, signal.SIGKILL),
            }
        )


def _signal_by_descriptor(pid: int) -> None:
    signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGTERM)


def _signal_by_file(pid: int) -> None:
    """Have the kernel send SIGKILL to the owner of a pipe when something is written to it."""
    reader, writer = os.pipe()
    fcntl.fcntl(reader, fcntl.F_SETOWN, pid)
    fcntl.fcntl(reader, _F_SETSIG, signal.SIGKILL)
    flags = fcntl.fcntl(reader, fcntl.F_GETFL)
    fcntl.fcntl(reader, fcntl.F_SETFL, flags | os.O_ASYNC)
    os.write(writer, b"x")


def signal_group(target: Target) -> None:
    """Signal our own process group, in which the parent would be without a new session."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    target.attempt("group", lambda: os.kill(0, signal.SIGTERM))


def signal_everybody(target: Target) -> None:
    """Kill everything that the user may kill."""
    target.attempt("everybody", lambda: os.kill(-1, signal.SIGKILL))


def steer(target: Target) -> None:
    """Slow the parent: limits, priorities, processors; each would spoil a measurement."""
    pid = target.victim
    attributes = kernel.buffer(struct.pack("=IIQiIQQQ", 48, 5, 0, 0, 0, 0, 0, 0))
    target.attempt_all(
        {
            "processor time": lambda: resource.prlimit(pid, resource.RLIMIT_CPU, (3600, 3600)),
            "priority": lambda: os.setpriority(os.PRIO_PROCESS, pid, 10),
            "priority of a group": lambda: os.setpriority(os.PRIO_PGRP, os.getpgid(pid), 12),
            "scheduler": lambda: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0)),
            "scheduler attributes": lambda: kernel.syscall(
                _SCHED_SETATTR, pid, kernel.address_of(attributes), 0
            ),
            "processors": lambda: os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))}),
            "disk priority": lambda: kernel.syscall(_IOPRIO_SET, 1, pid, _IDLE_CLASS),
            "memory preference": lambda: _write_text(f"/proc/{pid}/oom_score_adj", "900"),
        }
    )


def steer_limits(target: Target) -> None:
    """Lower only the limits of the parent."""
    limit = (3600, 3600)
    target.attempt("limit", lambda: resource.prlimit(target.victim, resource.RLIMIT_CPU, limit))


def _write_text(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def use_descriptors(target: Target) -> None:
    """Read every descriptor that is there, and write forged answers to all of them."""
    for fd in range(3, 64):
        target.attempt(f"read {fd}", partial(os.pread, fd, 99, 0))
    forged = (b'{"verdict": "PASSED"}', b'{"status": 0', bytes(1000), b"[]")
    for fd in range(3, 64):
        for message in forged:
            target.attempt(f"write {fd}", partial(os.write, fd, message))


def outlive(target: Target) -> None:
    """Give up dying with the parent."""
    target.attempt("no death signal", lambda: kernel.prctl(kernel.PR_SET_PDEATHSIG, 0))


def leave_daemons(target: Target) -> None:
    """Leave processes that have left their parent, their group and their session."""
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                time.sleep(_ENDLESS_S)
            os._exit(0)
        os.wait()
    target.steps["daemons"] = "ok"


def leave_zombies(target: Target) -> None:
    """Leave many ended children that nobody waits for, and orphans of ended children."""
    for _ in range(100):
        if os.fork() == 0:
            if os.fork() == 0:
                os._exit(0)
            os._exit(0)
    target.steps["zombies"] = "ok"


def ignore_signals(_: Target) -> None:
    """Ignore whatever can be ignored, and never end."""
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    while True:
        pass


def stop_self(_: Target) -> None:
    """Stop, so that nothing but SIGKILL has an effect."""
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(_ENDLESS_S)


def wait_for_ever(_: Target) -> None:
    """Wait in the kernel for a writer that never comes."""
    os.mkfifo("never")
    os.open("never", os.O_RDONLY)


def flood(_: Target) -> None:
    """Print without end."""
    text = b"PASSED speedup 1000x\n" * 3000
    while True:
        os.write(1, text)


def crash_in_c(_: Target) -> None:
    """Read from address 0 in C."""
    ctypes.string_at(0)


def crash_by_abort(_: Target) -> None:
    """Abort, which asks for a core file."""
    os.abort()


def print_forged(target: Target) -> None:
    """End well, saying that everything passed."""
    say('{"status": "PASSED", "speedup": 1000.0}\nCUDA error: timeout\n')
    target.steps["print"] = "ok"


CASES = (
    Case(24, "trace the parent", (trace,)),
    Case(25, "memory and descriptors of the parent", (read_memory,)),
    Case(26, "keys in environments", (read_environments,)),
    Case(27, "files through other processes", (traverse,)),
    Case(28, "signals", (send_signals,)),
    Case(28, "signal to the group", (signal_group,)),
    Case(28, "signal to everybody", (signal_everybody,), safe=False),
    Case(29, "priorities and limits of the parent", (steer,)),
    Case(29, "limits of the parent", (steer_limits,)),
    Case(30, "ignore all signals", (ignore_signals,), expect=Expect.KILLED, deadline_s=0.3),
    Case(30, "stop itself", (stop_self,), expect=Expect.KILLED, deadline_s=0.3),
    Case(32, "print forged results", (print_forged,)),
    Case(33, "inherited descriptors", (use_descriptors,)),
    Case(38, "outlive the parent", (outlive,)),
    Case(38, "daemons", (leave_daemons,)),
    Case(39, "zombies and orphans", (leave_zombies,)),
    Case(44, "wait for ever", (wait_for_ever,), expect=Expect.KILLED, deadline_s=0.3),
    Case(46, "print without end", (flood,), expect=Expect.CAPPED),
    Case(47, "crash in C", (crash_in_c,), expect=Expect.CRASHED),
    Case(47, "abort", (crash_by_abort,), expect=Expect.CRASHED),
)
