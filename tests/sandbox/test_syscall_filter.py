"""Each system call rule from both sides: refused inside, not refused (by us) outside."""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import resource
import signal
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from caging import Cage, attempts, run_outside

from hotloop.sandbox import kernel
from hotloop.sandbox import syscall_table as table

BAD = 0xFFFF_FFFF_FFFF_FFFF

HARMLESS_ARGUMENTS: dict[str, tuple[int, ...]] = {
    "ptrace": (0xFFFF, 0), "process_vm_readv": (0, 0, 0, 0, 0, BAD), "pidfd_getfd": (BAD, 0, 0),
    "kcmp": (0, 0, BAD, 0, 0), "process_madvise": (BAD, 0, 0, 0, 0),
    "unshare": (0,), "setns": (BAD, 0), "mount": (0, 0, 0, 0, 0), "chroot": (0,),
    "fsopen": (0, 0), "open_tree": (BAD, 0, 0),
    "io_uring_setup": (1, 0), "add_key": (0, 0, 0, 0, 0), "keyctl": (BAD, 0, 0, 0, 0),
    "perf_event_open": (0, 0, 0, BAD, 0), "fanotify_mark": (BAD, 0, 0, BAD, 0),
    "chmod": (0, 0), "fchmod": (BAD, 0), "fchmodat": (BAD, 0, 0), "chown": (0, 0, 0),
    "fchown": (BAD, 0, 0), "utime": (0, 0), "utimensat": (BAD, 0, 0, BAD),
    "setxattr": (0, 0, 0, 0, 0),
    "fsetxattr": (BAD, 0, 0, 0, 0), "removexattr": (0, 0),
    "shmget": (0, 0, 0), "semget": (0, BAD, 0), "msgget": (1, 0), "mq_open": (0, 0, 0, 0),
    "connect": (BAD, 0, 0), "accept": (BAD, 0, 0), "accept4": (BAD, 0, 0, 0),
}  # fmt: skip
"""Arguments that the kernel itself refuses for another reason, or that change nothing."""

ROOT_OUTSIDE = {"chroot", "mount", "fsopen", "open_tree", "setns", "perf_event_open"}
"""The kernel says EPERM to a plain user without any cage."""


def call_all() -> dict[str, str]:
    return attempts(
        {
            name: lambda name=name, words=words: kernel.syscall(table.REFUSED[name], *words)
            for name, words in HARMLESS_ARGUMENTS.items()
        }
    )


def test_listed_calls_are_refused_inside(cage: Cage) -> None:
    answers = cage.run(lambda _: call_all())
    assert {n: a for n, a in answers.items() if a != "EPERM"} == {}


def test_listed_calls_reach_the_kernel_outside() -> None:
    answers = run_outside(lambda _: call_all())
    refused = {name for name, answer in answers.items() if answer == "EPERM"}
    assert refused <= (set() if os.geteuid() == 0 else ROOT_OUTSIDE)


def test_numbers_agree_with_the_system_header() -> None:
    header = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
    if not header.is_file():
        pytest.skip("no kernel headers installed (package linux-libc-dev)")
    known = dict(re.findall(r"#define __NR_(\w+) (\d+)", header.read_text()))
    ours = {**table.REFUSED, **table.OWN_PROCESS_ONLY, **table.SOCKETS}
    ours |= {"clone": table.CLONE, "clone3": table.CLONE3, "ioctl": table.IOCTL}
    ours |= {"prctl": table.PRCTL, "personality": table.PERSONALITY}
    ours |= {"setpriority": table.SETPRIORITY, "ioprio_set": table.IOPRIO_SET}
    wrong = {n: (v, known[n]) for n, v in ours.items() if n in known and int(known[n]) != v}
    assert wrong == {}
    assert len(set(ours.values())) == len(ours)


def steer(pid: int) -> dict[str, Callable[[], object]]:
    """The calls that steer a process by its number; for 0, the calling one."""
    scheduler = os.sched_param(0)
    return {
        "prlimit": lambda: resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0)),
        "setpriority": lambda: os.setpriority(os.PRIO_PROCESS, pid, 19),
        "sched_setaffinity": lambda: os.sched_setaffinity(pid, os.sched_getaffinity(0)),
        "sched_setscheduler": lambda: os.sched_setscheduler(pid, os.SCHED_BATCH, scheduler),
        "ioprio_set": lambda: kernel.syscall(table.IOPRIO_SET, 1, pid, 3 << 13),
        "sched_setparam": lambda: os.sched_setparam(pid, scheduler),
    }


def test_parent_cannot_be_steered_but_self_can(cage: Cage) -> None:
    parent = cage.run(lambda pid: attempts(steer(pid)))
    assert set(parent.values()) == {"EPERM"}
    assert set(cage.run(lambda _: attempts(steer(0))).values()) == {"ok"}
    assert set(cage.run(lambda _: attempts(steer(os.getpid()))).values()) == {"ok"}


def test_parent_can_be_steered_outside() -> None:
    assert set(run_outside(lambda pid: attempts(steer(pid))).values()) == {"ok"}


def test_groups_and_users_cannot_be_reniced(cage: Cage) -> None:
    answers = cage.run(
        lambda _: attempts(
            {
                "group": lambda: os.setpriority(os.PRIO_PGRP, 0, 5),
                "user": lambda: os.setpriority(os.PRIO_USER, 0, 5),
            }
        )
    )
    assert set(answers.values()) == {"EPERM"}


REFUSED_SOCKETS = {
    "tcp": (socket.AF_INET, socket.SOCK_STREAM), "udp": (socket.AF_INET, socket.SOCK_DGRAM),
    "tcp6": (socket.AF_INET6, socket.SOCK_STREAM), "netlink": (socket.AF_NETLINK, socket.SOCK_RAW),
    "unix datagram": (socket.AF_UNIX, socket.SOCK_DGRAM),
    "tcp, flags": (socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC),
}  # fmt: skip


def open_sockets(_: int) -> dict[str, str]:
    return attempts({n: lambda a=a: socket.socket(*a).close() for n, a in REFUSED_SOCKETS.items()})


def test_network_sockets(cage: Cage) -> None:
    assert set(cage.run(open_sockets).values()) == {"EPERM"}


def test_network_sockets_open_outside() -> None:
    answers = run_outside(open_sockets)
    assert {answers[n] for n in ("tcp", "udp", "netlink", "unix datagram")} == {"ok"}


def unix_sockets(_: int) -> dict[str, str]:
    """What libcuda and multiprocessing do with Unix sockets, and what reaches daemons."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    name = b"\0hotloop-test-%d" % os.getpid()
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
    return attempts(
        {
            "bind": lambda: server.bind(name),
            "listen": lambda: server.listen(1),
            "connect": lambda: client.connect(name),
            "stream pair": lambda: [end.close() for end in socket.socketpair()],
            "datagram pair": lambda: socket.socketpair(type=socket.SOCK_DGRAM),
        }
    )


def test_unix_sockets(cage: Cage) -> None:
    assert cage.run(unix_sockets) == {
        "bind": "ok", "listen": "ok", "connect": "EPERM", "stream pair": "ok",
        "datagram pair": "EPERM",
    }  # fmt: skip


def test_unix_sockets_connect_outside() -> None:
    assert set(run_outside(unix_sockets).values()) == {"ok"}


def new_processes(_: int) -> dict[str, str]:
    sigchld = int(signal.SIGCHLD)

    def clone(flags: int) -> None:
        if kernel.syscall(table.CLONE, flags | sigchld, 0, 0, 0, 0) == 0:
            os._exit(0)

    return attempts(
        {
            "plain": lambda: clone(0),
            "user namespace": lambda: clone(kernel.CLONE_NEWUSER),
            "pid and user namespace": lambda: clone(kernel.CLONE_NEWUSER | kernel.CLONE_NEWPID),
            "sibling": lambda: clone(0x8000),
            "clone3": lambda: kernel.syscall(table.CLONE3, 0, 0),
            "newer than the table": lambda: kernel.syscall(table.NEWEST_KNOWN + 1, 0),
            "x32 getpid": lambda: kernel.syscall(0x4000_0000 | 39),
        }
    )


def test_new_processes(cage: Cage) -> None:
    assert cage.run(new_processes) == {
        "plain": "ok", "user namespace": "EPERM", "pid and user namespace": "EPERM",
        "sibling": "EPERM", "clone3": "ENOSYS", "newer than the table": "ENOSYS",
        "x32 getpid": "ENOSYS",
    }  # fmt: skip


def test_new_processes_outside() -> None:
    answers = run_outside(new_processes)
    assert answers["plain"] == answers["sibling"] == "ok"
    assert answers["clone3"] == "EINVAL"


def call_by_32_bit_gate(_: int) -> int:
    """Call getpid by its 32-bit number (20) through int 0x80."""
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return int(ctypes.CFUNCTYPE(ctypes.c_int)(address)())


def test_32_bit_calls_kill(cage: Cage) -> None:
    status = cage.outcome(call_by_32_bit_gate).wait_status
    assert os.waitstatus_to_exitcode(status) == -signal.SIGSYS


def test_death_with_the_parent_cannot_be_given_up(cage: Cage) -> None:
    answers = cage.run(
        lambda _: attempts(
            {
                "give up": lambda: kernel.prctl(kernel.PR_SET_PDEATHSIG, 0),
                "ask for a mild one": lambda: kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGCHLD),
                "same again": lambda: kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL),
                "name a thread": lambda: kernel.prctl(15, ctypes.addressof(_NAME)),
            }
        )
    )
    assert answers == {
        "give up": "EPERM", "ask for a mild one": "EPERM",
        "same again": "ok", "name a thread": "ok",
    }  # fmt: skip


_NAME = ctypes.create_string_buffer(b"kernel")


def own_orphans(_: int) -> dict[str, str]:
    option = kernel.PR_SET_CHILD_SUBREAPER
    return attempts(
        {
            "take": lambda: kernel.prctl(option, 1),
            "give up": lambda: kernel.prctl(option, 0),
            "ask": lambda: kernel.prctl(37, ctypes.addressof(_NAME)),
        }
    )


def test_who_gets_the_orphans_stays_as_it_is(cage: Cage) -> None:
    assert cage.run(own_orphans) == {"take": "EPERM", "give up": "EPERM", "ask": "ok"}
    assert set(run_outside(own_orphans).values()) == {"ok"}


def fake_typing(_: int) -> dict[str, str]:
    reader, _writer = os.pipe()
    letter = ctypes.create_string_buffer(b"x")
    push = (table.IOCTL, reader, 0x5412, ctypes.addressof(letter))
    return attempts(
        {
            "TIOCSTI": lambda: kernel.syscall(*push),
            "FIONBIO": lambda: os.set_blocking(reader, False),
        }
    )


def test_terminal_input_cannot_be_faked(cage: Cage) -> None:
    assert cage.run(fake_typing) == {"TIOCSTI": "EPERM", "FIONBIO": "ok"}
    assert run_outside(fake_typing) == {"TIOCSTI": "ENOTTY", "FIONBIO": "ok"}


def wanted(_: int) -> dict[str, str]:
    def thread() -> None:
        worker = threading.Thread(target=lambda: None)
        worker.start()
        worker.join()

    def fork() -> None:
        child = os.fork()
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0

    mask = ctypes.create_string_buffer(128)
    return attempts(
        {
            "thread": thread,
            "fork": fork,
            "program": lambda: subprocess.run(["/bin/true"], check=True),
            "memfd": lambda: os.ftruncate(os.memfd_create("buffer"), 1 << 20),
            "eventfd": lambda: os.eventfd(0),
            "big reservation": lambda: mmap.mmap(-1, 1 << 40, prot=0, flags=0x4022),
            "mincore": lambda: kernel.syscall(27, 0, 0, 0),
            "get_mempolicy": lambda: kernel.syscall(239, 0, ctypes.addressof(mask), 1024, 0, 0),
            "kill own child group": lambda: os.kill(os.getpid(), 0),
        }
    )


def test_what_cuda_and_python_need_works(cage: Cage) -> None:
    assert set(cage.run(wanted).values()) == {"ok"}
