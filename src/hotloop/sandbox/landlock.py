"""Landlock: which files, ports, devices and processes this process may still reach.

Rights come from linux/landlock.h, one step per ABI version. Everything that the running kernel can
refuse is handled, so whatever no rule grants is refused. A path that does not exist is skipped and
named: skipping can only make the cage narrower.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Iterable

from hotloop.errors import SandboxUnavailable
from hotloop.sandbox import kernel
from hotloop.sandbox.spec import CageSpec, check_gpu_node, check_writable

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_RULE_PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE = 1 << 4, 1 << 5
MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK = 1 << 6, 1 << 7, 1 << 8, 1 << 9
MAKE_FIFO, MAKE_BLOCK, MAKE_SYM = 1 << 10, 1 << 11, 1 << 12
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15

READ_RIGHTS = EXECUTE | READ_FILE | READ_DIR
WRITE_RIGHTS = (
    READ_FILE | READ_DIR | WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG
    | MAKE_SOCK | MAKE_FIFO | MAKE_SYM | REFER | TRUNCATE
)  # fmt: skip
DEVICE_RIGHTS = READ_FILE | READ_DIR | WRITE_FILE | IOCTL_DEV
THREAD_RIGHTS = READ_FILE | READ_DIR | WRITE_FILE
_FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

NEWEST_KNOWN_ABI = 7
_SINCE = {2: REFER, 3: TRUNCATE, 5: IOCTL_DEV}
_NET_TCP = 0b11
_SCOPE_ABSTRACT_UNIX_AND_SIGNAL = 0b11
_GAPS = {
    3: "a file that its user may write can be truncated outside the cage",
    4: "TCP is refused by the system call filter alone",
    5: "device ioctl is not refused by Landlock",
    6: "signals reach other processes of the same user",
}


class _RulesetAttr(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneathAttr(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def abi_version() -> int:
    """Return the Landlock ABI of the running kernel; 0 where it has none or it is switched off."""
    try:
        return kernel.syscall(_CREATE_RULESET, 0, 0, _VERSION_FLAG)
    except OSError as exc:
        if exc.errno in (errno.ENOSYS, errno.EOPNOTSUPP):
            return 0
        if exc.errno in (errno.EPERM, errno.EACCES):
            return 0  # a container's own filter refuses the call: as good as absent
        raise


def gaps(abi: int) -> tuple[str, ...]:
    """Name what a kernel of this ABI cannot refuse."""
    absent = ((need, what) for need, what in _GAPS.items() if abi < need)
    return tuple(f"Landlock ABI {abi} < {need}: {what}" for need, what in absent)


def handled_rights(abi: int) -> int:
    """Return the file-system rights that a kernel of this ABI can refuse."""
    rights = (1 << 13) - 1
    for since, right in _SINCE.items():
        if abi >= since:
            rights |= right
    return rights


def restrict(spec: CageSpec, read_paths: Iterable[str]) -> tuple[str, ...]:
    """Confine this process for good to the paths of `spec`; no_new_privs must be set.

    Args:
        spec: names the work folder and the writable paths.
        read_paths: what may be read, which may be narrower than `spec.read_paths`.

    Returns:
        One line for every path that was skipped and every right that this kernel lacks.

    Raises:
        SandboxUnavailable: the kernel has no Landlock, or refused the ruleset.
    """
    abi = min(abi_version(), NEWEST_KNOWN_ABI)
    if abi == 0:
        raise SandboxUnavailable(
            "expected Landlock, this kernel has none enabled; use Linux 5.13 or newer and add "
            "landlock to the lsm= boot parameter"
        )
    missing = list(gaps(abi))
    ruleset = _create_ruleset(abi)
    try:
        check_writable(os.path.realpath(spec.work_dir))
        _grant(ruleset, spec.work_dir, abi, READ_RIGHTS | WRITE_RIGHTS)
        for path in read_paths:
            if not _grant_if_there(ruleset, path, abi, READ_RIGHTS):
                missing.append(f"path {path}: absent or not reachable, not granted")
        for path in spec.write_paths:
            if not _grant_writable(ruleset, path, abi, spec.gpu):
                missing.append(f"path {path}: absent or not reachable, not granted")
        kernel.syscall(_RESTRICT_SELF, ruleset, 0)
    except OSError as exc:
        raise SandboxUnavailable(
            f"expected Landlock ABI {abi} to take the ruleset, the kernel answered {exc}; "
            "check that no_new_privs is set and that the work folder exists"
        ) from exc
    finally:
        os.close(ruleset)
    return tuple(missing)


def _create_ruleset(abi: int) -> int:
    attr = _RulesetAttr(
        handled_rights(abi),
        _NET_TCP if abi >= 4 else 0,
        _SCOPE_ABSTRACT_UNIX_AND_SIGNAL if abi >= 6 else 0,
    )
    try:
        return kernel.syscall(_CREATE_RULESET, ctypes.addressof(attr), ctypes.sizeof(attr), 0)
    except OSError as exc:
        raise SandboxUnavailable(
            f"expected a Landlock ruleset of ABI {abi}, the kernel answered {exc}; "
            "run `hotloop doctor` on this machine"
        ) from exc


def _grant(ruleset: int, path: str, abi: int, rights: int) -> None:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        _add_rule(ruleset, fd, rights & handled_rights(abi))
    finally:
        os.close(fd)


def _grant_if_there(ruleset: int, path: str, abi: int, rights: int) -> bool:
    try:
        _grant(ruleset, path, abi, rights)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return False
    return True


def _grant_writable(ruleset: int, path: str, abi: int, gpu: int | None) -> bool:
    """Grant a writable path by what it really is, after symbolic links."""
    if os.path.normpath(path) == "/proc/self/task":
        return _grant_if_there(ruleset, path, abi, THREAD_RIGHTS)
    real = os.path.realpath(path)
    check_writable(real)
    check_gpu_node(real, gpu)
    rights = DEVICE_RIGHTS if real.startswith("/dev/nvidia") else WRITE_RIGHTS
    return _grant_if_there(ruleset, real, abi, rights)


def _add_rule(ruleset: int, fd: int, rights: int) -> None:
    if not stat.S_ISDIR(os.fstat(fd).st_mode):
        rights &= _FILE_RIGHTS
    attr = _PathBeneathAttr(rights, fd)
    kernel.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.addressof(attr), 0)
