"""System calls that Python has no function for, by ctypes.

One thin layer: numbers in, an int or an OSError out. It decides nothing.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Iterable

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_READ = 23
PR_CAPBSET_DROP = 24
PR_SET_SECUREBITS = 28
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

CLONE_NEWNS = 0x0002_0000
CLONE_NEWUTS = 0x0400_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000

MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x4_0000

_CLOSE_RANGE = 436
_MNT_DETACH = 2
_HIGHEST_DESCRIPTOR = 0xFFFF_FFFF

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def is_x86_64() -> bool:
    """Return whether system call numbers are those of 64-bit x86, the only table shipped."""
    return platform.machine() == "x86_64" and ctypes.sizeof(ctypes.c_void_p) == 8


def syscall(number: int, *arguments: int) -> int:
    """Make one system call with integer (or address) arguments.

    Raises:
        OSError: the kernel refused; `errno` says why.
    """
    ctypes.set_errno(0)
    words = [ctypes.c_ulong(a & 0xFFFF_FFFF_FFFF_FFFF) for a in arguments]
    result = int(_libc.syscall(ctypes.c_long(number), *words))
    return _checked(result, f"system call {number}")


def prctl(option: int, *arguments: int) -> int:
    """Change an attribute of this thread; absent arguments are 0, as the kernel requires.

    Raises:
        OSError: the kernel refused.
    """
    ctypes.set_errno(0)
    padded = [*arguments, 0, 0, 0, 0][:4]
    result = _libc.prctl(ctypes.c_int(option), *(ctypes.c_ulong(a) for a in padded))
    return _checked(int(result), f"prctl {option}")


def unshare(flags: int) -> None:
    """Move this process into new namespaces.

    Raises:
        OSError: the kernel refused.
    """
    ctypes.set_errno(0)
    _checked(int(_libc.unshare(ctypes.c_int(flags))), f"unshare {flags:#x}")


def close_descriptors_except(keep: Iterable[int]) -> None:
    """Close every file descriptor that is not in `keep`, by close_range(2) (Linux 5.9).

    Raises:
        OSError: the kernel has no such call.
    """
    first = 0
    for fd in sorted(set(keep)):
        if fd > first:
            syscall(_CLOSE_RANGE, first, fd - 1, 0)
        first = fd + 1
    syscall(_CLOSE_RANGE, first, _HIGHEST_DESCRIPTOR, 0)


def mount(
    source: str, target: str, *, kind: str | None = None, flags: int, options: str = ""
) -> None:
    """Mount a file system, or change a mount.

    Raises:
        OSError: the kernel refused.
    """
    ctypes.set_errno(0)
    result = _libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        None if kind is None else kind.encode(),
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    _checked(int(result), f"mount on {target}")


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def unmount(target: str) -> None:
    """Take a file system out of the tree; it ends when nothing uses it any more.

    Raises:
        OSError: the kernel refused.
    """
    ctypes.set_errno(0)
    _checked(int(_libc.umount2(os.fsencode(target), ctypes.c_int(_MNT_DETACH))), f"umount {target}")


def buffer(content: bytes) -> ctypes.Array[ctypes.c_char]:
    """Return memory with this content, to pass to a system call by `address_of`."""
    return ctypes.create_string_buffer(content, len(content))


def address_of(memory: ctypes.Array[ctypes.c_char]) -> int:
    """Return the address of memory, which must be kept alive as long as it is used."""
    return ctypes.addressof(memory)
