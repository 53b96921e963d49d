"""The system call filter: a classic BPF program, built here and installed for good.

Argument words are 64 bit wide, but the kernel uses the low half of a process id, a socket family,
an ioctl code; so the low half is what is compared. Every rule ends in a return, so rules are
independent of each other.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
from typing import NamedTuple

from hotloop.errors import SandboxUnavailable
from hotloop.sandbox import kernel
from hotloop.sandbox import syscall_table as table

_SECCOMP_SYSCALL, _SET_MODE_FILTER, _GET_ACTION_AVAIL = 317, 1, 2
_KEEP_SPECULATION = 4
"""SECCOMP_FILTER_FLAG_SPEC_ALLOW: else kernels before 5.16 slow the process that is being timed."""

_ARCH_X86_64 = 0xC000_003E
_OFFSET_NUMBER, _OFFSET_ARCH, _OFFSET_ARGUMENTS = 0, 4, 16

_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _JUMP_SET, _RETURN, _AND = (
    0x20, 0x15, 0x35, 0x45, 0x06, 0x54,
)  # fmt: skip

ALLOW = 0x7FFF_0000
KILL_PROCESS = 0x8000_0000
_ERRNO = 0x0005_0000

_NEW_NAMESPACE_FLAGS = 0x7E02_0000
_CLONE_PARENT = 0x8000
"""A child that its creator's parent owns: it would turn up among the judge's own children."""
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_WHICH_PROCESS = {table.SETPRIORITY: 0, table.IOPRIO_SET: 1}
_SIGKILL = 9


class Instruction(NamedTuple):
    """One BPF instruction: `jt` and `jf` count the instructions to skip when true and false."""

    code: int
    jt: int
    jf: int
    k: int


def refuse(number: int) -> int:
    """Return the filter result that makes a system call fail with this errno."""
    return _ERRNO | number


def is_available() -> bool:
    """Return whether this process may install a filter that answers with an errno."""
    action = ctypes.c_uint32(_ERRNO)
    try:
        kernel.syscall(_SECCOMP_SYSCALL, _GET_ACTION_AVAIL, 0, ctypes.addressof(action))
    except OSError:
        return False  # no seccomp in this kernel, or the number means another call here
    return True


def build_filter(own_pid: int) -> list[Instruction]:
    """Return the program of a cage whose first process is `own_pid`."""
    eperm = refuse(errno.EPERM)
    program = [
        Instruction(_LOAD, 0, 0, _OFFSET_ARCH),
        Instruction(_JUMP_EQUAL, 1, 0, _ARCH_X86_64),
        Instruction(_RETURN, 0, 0, KILL_PROCESS),
        Instruction(_LOAD, 0, 0, _OFFSET_NUMBER),
        # x32 calls carry bit 30, so they are refused here together with calls of newer kernels
        Instruction(_JUMP_GREATER_EQUAL, 0, 1, table.NEWEST_KNOWN + 1),
        Instruction(_RETURN, 0, 0, refuse(errno.ENOSYS)),
        *_rule(table.CLONE3, [Instruction(_RETURN, 0, 0, refuse(errno.ENOSYS))]),
    ]
    for number in table.REFUSED.values():
        program += _rule(number, [Instruction(_RETURN, 0, 0, eperm)])
    for number in table.OWN_PROCESS_ONLY.values():
        program += _rule(number, _argument_in(0, (0, own_pid)))
    for number, which in _WHICH_PROCESS.items():
        program += _rule(number, _which_and_who(which, own_pid))
    for number in table.SOCKETS.values():
        program += _rule(number, _unix_stream_only())
    program += _rule(table.CLONE, _argument_without(0, _NEW_NAMESPACE_FLAGS | _CLONE_PARENT))
    program += _rule(table.IOCTL, _argument_not_in(1, (_TIOCSTI, _TIOCLINUX)))
    program += _rule(table.PERSONALITY, _argument_in(0, (0, 0xFFFF_FFFF)))
    program += _rule(table.PRCTL, _stays_in_its_tree())
    return [*program, Instruction(_RETURN, 0, 0, ALLOW)]


def install(own_pid: int) -> None:
    """Install the filter in this thread for good; no_new_privs must be set.

    Raises:
        SandboxUnavailable: not 64-bit x86, or the kernel refused the filter.
    """
    if not kernel.is_x86_64():
        raise SandboxUnavailable(
            "expected 64-bit x86, the only system call table shipped; run on such a machine, or "
            "choose --min-isolation T0 where the code is trusted"
        )
    program = build_filter(own_pid)
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    instructions = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("@HP", len(program), ctypes.addressof(instructions))
    header_buffer = ctypes.create_string_buffer(header, len(header))
    address = ctypes.addressof(header_buffer)
    try:
        kernel.syscall(_SECCOMP_SYSCALL, _SET_MODE_FILTER, _KEEP_SPECULATION, address)
    except OSError as exc:
        raise SandboxUnavailable(
            f"expected the kernel to take a filter of {len(program)} instructions, it answered "
            f"{os.strerror(exc.errno or 0)}; enable CONFIG_SECCOMP_FILTER"
        ) from exc


def _rule(number: int, body: list[Instruction]) -> list[Instruction]:
    return [Instruction(_JUMP_EQUAL, 0, len(body), number), *body]


def _load_argument(index: int) -> Instruction:
    return Instruction(_LOAD, 0, 0, _OFFSET_ARGUMENTS + 8 * index)


def _allow_or_refuse() -> list[Instruction]:
    """End a rule: fall in here to refuse, jump over one instruction to allow."""
    return [
        Instruction(_RETURN, 0, 0, refuse(errno.EPERM)),
        Instruction(_RETURN, 0, 0, ALLOW),
    ]


def _argument_in(index: int, allowed: tuple[int, ...]) -> list[Instruction]:
    tests = [
        Instruction(_JUMP_EQUAL, len(allowed) - i, 0, value) for i, value in enumerate(allowed)
    ]
    return [_load_argument(index), *tests, *_allow_or_refuse()]


def _argument_not_in(index: int, refused: tuple[int, ...]) -> list[Instruction]:
    last = len(refused) - 1
    tests = [
        Instruction(_JUMP_EQUAL, last - i, 1 if i == last else 0, value)
        for i, value in enumerate(refused)
    ]
    return [_load_argument(index), *tests, *_allow_or_refuse()]


def _argument_without(index: int, bits: int) -> list[Instruction]:
    return [_load_argument(index), Instruction(_JUMP_SET, 0, 1, bits), *_allow_or_refuse()]


def _which_and_who(which: int, own_pid: int) -> list[Instruction]:
    """Allow only 'a process' (not a group, not a user) and only this one."""
    return [
        _load_argument(0),
        Instruction(_JUMP_EQUAL, 0, 3, which),
        _load_argument(1),
        Instruction(_JUMP_EQUAL, 2, 0, 0),
        Instruction(_JUMP_EQUAL, 1, 0, own_pid),
        *_allow_or_refuse(),
    ]


def _unix_stream_only() -> list[Instruction]:
    """Allow Unix stream and seqpacket sockets; a datagram socket sends to any path unconnected."""
    return [
        _load_argument(0),
        Instruction(_JUMP_EQUAL, 0, 4, int(socket.AF_UNIX)),
        _load_argument(1),
        Instruction(_AND, 0, 0, 0xF),
        Instruction(_JUMP_EQUAL, 2, 0, int(socket.SOCK_STREAM)),
        Instruction(_JUMP_EQUAL, 1, 0, int(socket.SOCK_SEQPACKET)),
        *_allow_or_refuse(),
    ]


def _stays_in_its_tree() -> list[Instruction]:
    """Refuse to give up dying with the parent, or its orphans; every other prctl is allowed."""
    return [
        _load_argument(0),
        Instruction(_JUMP_EQUAL, 3, 0, kernel.PR_SET_CHILD_SUBREAPER),
        Instruction(_JUMP_EQUAL, 0, 3, kernel.PR_SET_PDEATHSIG),
        _load_argument(1),
        Instruction(_JUMP_EQUAL, 1, 0, _SIGKILL),
        *_allow_or_refuse(),
    ]
