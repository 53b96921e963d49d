"""Attacks on rights and on the kernel's own gates: namespaces, users, odd system calls."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import socket
import struct
import subprocess
import time

from hotloop.sandbox import kernel
from hotloop.selftest.case import Case, Target

_CLONE, _CLONE3, _PERSONALITY = 56, 435, 135
_IO_URING_SETUP, _USERFAULTFD, _BPF, _PERF_EVENT_OPEN, _FANOTIFY_INIT = 425, 323, 321, 298, 300
_USER_MODE_ONLY, _ADDR_NO_RANDOMIZE, _CLONE_PARENT = 1, 0x0004_0000, 0x8000
_ENDLESS_S = 1000
_OWN_USER_CODE = 0x60
"""exclude_kernel and exclude_hv: what an unprivileged process may ask for."""
_TRACE_ME_BY_32_BIT_GATE = bytes.fromhex("53 b81a000000 31db 31c9 31d2 31f6 cd80 5b c3")
"""push rbx; eax = 26, ptrace's 32-bit number; all arguments 0 (TRACEME); int 0x80; pop rbx; ret."""


def new_namespaces(target: Target) -> None:
    """Enter new namespaces, in which more rights are to be had; children stay to be looked at."""
    user = kernel.CLONE_NEWUSER
    arguments = kernel.buffer(struct.pack("=8Q", user, 0, 0, 0, signal.SIGCHLD, 0, 0, 0))
    target.attempt_all(
        {
            "clone": lambda: _stay(kernel.syscall(_CLONE, user | signal.SIGCHLD, 0, 0, 0, 0)),
            "clone3": lambda: _stay(kernel.syscall(_CLONE3, kernel.address_of(arguments), 64)),
            "unshare": lambda: kernel.unshare(user | kernel.CLONE_NEWNS),
            "mount": lambda: kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE),
        }
    )


def clone_namespace(target: Target) -> None:
    """Make a child in a new user namespace by clone only."""
    flags = kernel.CLONE_NEWUSER | signal.SIGCHLD
    target.attempt("clone", lambda: _stay(kernel.syscall(_CLONE, flags, 0, 0, 0, 0)))


def clone3_namespace(target: Target) -> None:
    """Make a child in a new user namespace by clone3, whose flags a filter cannot read."""
    fields = struct.pack("=8Q", kernel.CLONE_NEWUSER, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
    arguments = kernel.buffer(fields)
    address = kernel.address_of(arguments)
    target.attempt("clone3", lambda: _stay(kernel.syscall(_CLONE3, address, 64)))


def unshare_namespace(target: Target) -> None:
    """Enter a new user namespace by unshare only."""
    target.attempt("unshare", lambda: kernel.unshare(kernel.CLONE_NEWUSER))


def _stay(child: int) -> None:
    if child == 0:
        time.sleep(_ENDLESS_S)


def clone_sibling(target: Target) -> None:
    """Make a process that belongs to the parent, so that it is not among our descendants."""
    flags = _CLONE_PARENT | signal.SIGCHLD
    target.attempt("sibling", lambda: _stay(kernel.syscall(_CLONE, flags, 0, 0, 0, 0)))


def kernel_objects(target: Target) -> None:
    """Open parts of the kernel that go round the filter or are rarely checked."""
    ring = kernel.buffer(bytes(120))
    table = kernel.buffer(struct.pack("=IIII", 2, 4, 8, 1) + bytes(112))
    target.attempt_all(
        {
            "io_uring": lambda: kernel.syscall(_IO_URING_SETUP, 4, kernel.address_of(ring)),
            "userfaultfd": lambda: kernel.syscall(_USERFAULTFD, _USER_MODE_ONLY),
            "bpf map": lambda: kernel.syscall(_BPF, 0, kernel.address_of(table), 128),
            "fanotify": lambda: kernel.syscall(_FANOTIFY_INIT, 0x200, 0),
        }
    )


def counters(target: Target) -> None:
    """Open the processor's counters, which show what other processes do."""
    event = kernel.buffer(struct.pack("=IIQQQQQ", 1, 112, 0, 0, 0, 0, _OWN_USER_CODE) + bytes(64))
    address = kernel.address_of(event)
    target.attempt("counters", lambda: kernel.syscall(_PERF_EVENT_OPEN, address, 0, -1, -1, 0))


def become_root(target: Target) -> None:
    """Become root by asking."""
    target.attempt_all(
        {
            "user": lambda: os.setresuid(0, 0, 0),
            "group": lambda: os.setresgid(0, 0, 0),
            "groups": lambda: os.setgroups([0]),
        }
    )


def set_uid_program(target: Target) -> None:
    """Read root's file by a program that runs as root for whoever starts it."""

    def run() -> bytes:
        cat = [f"{target.allowed}/set-uid-cat", f"{target.allowed}/root.key"]
        return subprocess.run(cat, capture_output=True, check=False).stdout

    target.attempt("set-uid cat", run)


def change_personality(target: Target) -> None:
    """Switch off the random placement of memory, for us and for what we start."""
    target.attempt("personality", lambda: kernel.syscall(_PERSONALITY, _ADDR_NO_RANDOMIZE))


def new_root(target: Target) -> None:
    """Change what / is."""
    target.attempt("chroot", lambda: os.chroot("/usr"))


def other_gate(_: Target) -> None:
    """Make a refused call by the 32-bit gate, where calls have other numbers."""
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(_TRACE_ME_BY_32_BIT_GATE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    ctypes.CFUNCTYPE(ctypes.c_int)(address)()


def rename_host(target: Target) -> None:
    """Rename the machine."""
    target.attempt("host name", lambda: socket.sethostname("hotloop-was-here"))


CASES = (
    Case(15, "kernel objects", (kernel_objects,)),
    Case(25, "processor counters", (counters,)),
    Case(41, "new namespaces", (new_namespaces,)),
    Case(41, "new namespace by clone", (clone_namespace,)),
    Case(41, "new namespace by clone3", (clone3_namespace,)),
    Case(41, "new namespace by unshare", (unshare_namespace,)),
    Case(41, "child of the parent", (clone_sibling,)),
    Case(41, "become root", (become_root,)),
    Case(41, "set-uid program", (set_uid_program,), needs="dropped_user", safe=False),
    Case(41, "personality", (change_personality,)),
    Case(41, "another root folder", (new_root,)),
    Case(41, "32-bit system calls", (other_gate,)),
    Case(41, "rename the machine", (rename_host,), safe=False),
)
