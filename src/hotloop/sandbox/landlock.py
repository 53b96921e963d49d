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
THREAD_RIGHTS = READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE
"""For /proc/self/task: libcuda names its threads with O_TRUNC, and without it cuInit says 304."""
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


def restrict(
    spec: CageSpec, read_paths: Iterable[str], *, files_only: bool = False
) -> tuple[str, ...]:
    """Confine this process for good to the paths of `spec`; no_new_privs must be set.

    Args:
        spec: names the work folder and the writable paths.
        read_paths: what may be read, which may be narrower than `spec.read_paths`.
        files_only: leave TCP, abstract sockets and signals as they are.

    Returns:
        One line for every path that was skipped and every right that this kernel lacks.

    Raises:
        SandboxUnavailable: the kernel has no Landlock, or refused the ruleset.
        ConfigError: a writable path leads to a system folder through a symbolic link.
    """
    abi = min(abi_version(), NEWEST_KNOWN_ABI)
    if abi == 0:
        raise SandboxUnavailable(
            "expected Landlock, this kernel has none enabled; use Linux 5.13 or newer and add "
            "landlock to the lsm= boot parameter"
        )
    skipped = []
    try:
        with _Ruleset(abi, files_only=files_only) as ruleset:
            check_writable(os.path.realpath(spec.work_dir))
            ruleset.grant(spec.work_dir, READ_RIGHTS | WRITE_RIGHTS)
            skipped += [p for p in read_paths if not ruleset.grant_if_there(p, READ_RIGHTS)]
            for path in spec.write_paths:
                real, rights = _writable(path, spec.gpu)
                if not ruleset.grant_if_there(real, rights):
                    skipped.append(path)
            ruleset.enforce()
    except OSError as exc:
        raise SandboxUnavailable(
            f"expected Landlock ABI {abi} to take the ruleset, the kernel answered {exc}; "
            "check that no_new_privs is set and that the work folder exists"
        ) from exc
    return (*gaps(abi), *(f"path {p}: absent or not reachable, not granted" for p in skipped))


class _Ruleset:
    """A ruleset under construction: it refuses everything of its ABI that is not granted."""

    def __init__(self, abi: int, *, files_only: bool) -> None:
        self._rights = handled_rights(abi)
        attr = _RulesetAttr(
            self._rights,
            _NET_TCP if abi >= 4 and not files_only else 0,
            _SCOPE_ABSTRACT_UNIX_AND_SIGNAL if abi >= 6 and not files_only else 0,
        )
        size = ctypes.sizeof(attr)
        self._fd = kernel.syscall(_CREATE_RULESET, ctypes.addressof(attr), size, 0)

    def __enter__(self) -> _Ruleset:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def grant(self, path: str, rights: int) -> None:
        """Allow rights on a file, or on everything below a folder."""
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            rights &= self._rights
            if not stat.S_ISDIR(os.fstat(fd).st_mode):
                rights &= _FILE_RIGHTS
            attr = _PathBeneathAttr(rights, fd)
            address = ctypes.addressof(attr)
            kernel.syscall(_ADD_RULE, self._fd, _RULE_PATH_BENEATH, address, 0)
        finally:
            os.close(fd)

    def grant_if_there(self, path: str, rights: int) -> bool:
        """Grant, or return False where the path is absent or lies behind a closed folder."""
        try:
            self.grant(path, rights)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return False
        return True

    def enforce(self) -> None:
        """Confine this thread for good."""
        kernel.syscall(_RESTRICT_SELF, self._fd, 0)


def _writable(path: str, gpu: int | None) -> tuple[str, int]:
    """Return what a writable path really is, after symbolic links, and the rights that fit it."""
    if os.path.normpath(path) == "/proc/self/task":
        return path, THREAD_RIGHTS
    real = os.path.realpath(path)
    check_writable(real)
    check_gpu_node(real, gpu)
    return real, DEVICE_RIGHTS if real.startswith("/dev/nvidia") else WRITE_RIGHTS
