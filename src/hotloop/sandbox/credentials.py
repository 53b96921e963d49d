"""Whose rights a cage has: its user, its groups, its capabilities.

Root with capabilities walks through Landlock (it reads any /proc/PID/environ) and the NVIDIA driver
gives it administrator calls, so capabilities always go. The user goes too, unless that user could
not read what the cage needs, such as a Python below a private home folder; then uid 0 stays without
any capability, and the reason is reported.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from hotloop.errors import InfraError
from hotloop.sandbox import kernel
from hotloop.sandbox.spec import CageSpec

_CAPSET = 126
_CAPABILITY_VERSION_3 = 0x2008_0522
_HIGHEST_POSSIBLE_CAPABILITY = 63
CAP_SETGID, CAP_SETUID, CAP_SETPCAP, CAP_SYS_ADMIN = 6, 7, 8, 21

_SECUREBITS_LOCKED = 0b1110_1111
"""NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE with their locks, KEEP_CAPS locked off: uid 0
gets nothing back by running a program (linux/securebits.h)."""

PUBLIC_ETC = (
    "/etc/alternatives", "/etc/group", "/etc/hosts", "/etc/ld.so.cache", "/etc/ld.so.conf",
    "/etc/ld.so.conf.d", "/etc/localtime", "/etc/mime.types", "/etc/nsswitch.conf", "/etc/nvidia",
    "/etc/OpenCL", "/etc/os-release", "/etc/passwd", "/etc/ssl/certs",
)  # fmt: skip
"""What stands in for /etc while uid 0 stays, who may read /etc/shadow as its owner."""

_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DEEPEST = 64

_UNLIMITED_ROOT = "process limit: the kernel does not count processes of uid 0"


def effective_capabilities() -> int:
    """Return the effective capabilities of this process as a bit mask."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        for line in status:
            if line.startswith("CapEff:"):
                return int(line.split()[1], 16)
    raise InfraError("expected a CapEff line in /proc/self/status, found none; mount /proc")


def has_capability(number: int) -> bool:
    """Return whether this process holds a capability in effect."""
    return bool(effective_capabilities() >> number & 1)


def unusable_by_uid(
    uid: int,
    read_paths: Iterable[str],
    *,
    write_paths: Iterable[str] = (),
    search_paths: Iterable[str] = (),
) -> str:
    """Name the first existing path that `uid` cannot use; an empty string when there is none.

    A forked child becomes `uid` without any group and asks the kernel, so parents, access lists and
    mount options all count. Call it as root.

    Args:
        uid: the user to ask for.
        read_paths: must be readable; folders also searchable.
        write_paths: must be readable and writable.
        search_paths: folders that must let `uid` through.

    Raises:
        InfraError: the child could not become `uid`.
    """
    wanted = [(p, os.R_OK) for p in read_paths]
    wanted += [(p, os.R_OK | os.W_OK) for p in write_paths]
    wanted += [(p, os.X_OK) for p in search_paths]
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os._exit(_answer_as(uid, writer, wanted))
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = os.fsdecode(pipe.read())
    _, status = os.waitpid(child, 0)
    if status != 0:
        raise InfraError(
            f"expected a child to become uid {uid}, it ended with wait status {status}; "
            "run as root with CAP_SETUID and CAP_SETGID, or give no drop_uid"
        )
    return answer


def readable_by_uid(uid: int, paths: Iterable[str]) -> bool:
    """Return whether `uid` could read every existing path of `paths`, its parents included.

    Raises:
        InfraError: the child that asks could not become `uid`.
    """
    return unusable_by_uid(uid, paths) == ""


def choose_uid(spec: CageSpec) -> tuple[int, tuple[str, ...], tuple[str, ...]]:
    """Decide the user of a cage.

    Returns:
        The user id, the readable paths that go with it, and what is weaker than asked.
    """
    if os.geteuid() != 0:
        return os.geteuid(), spec.read_paths, ()
    reason = reason_to_stay_root(spec)
    if spec.drop_uid is not None and not reason:
        return spec.drop_uid, spec.read_paths, ()
    kept = f"user: uid 0 kept without capabilities: {reason}"
    return 0, _without_private_etc(spec.read_paths), (kept, _UNLIMITED_ROOT)


def reason_to_stay_root(spec: CageSpec) -> str:
    """Return why root cannot become `spec.drop_uid`; an empty string when it can.

    Raises:
        InfraError: the child that asks for that user could not become it.
    """
    uid = spec.drop_uid
    if uid is None:
        return "the spec names no drop_uid"
    if not (has_capability(CAP_SETUID) and has_capability(CAP_SETGID)):
        return "this container lacks CAP_SETUID or CAP_SETGID"
    if not _is_mapped(uid):
        return f"uid {uid} does not exist in this user namespace"
    blocked = unusable_by_uid(
        uid,
        spec.read_paths,
        write_paths=spec.write_paths,
        search_paths=(os.path.dirname(os.path.realpath(spec.work_dir)),),
    )
    return f"uid {uid} cannot use {blocked}" if blocked else ""


def drop(uid: int) -> None:
    """Give up every capability, and the user and groups of root where `uid` is another one.

    Raises:
        OSError: the kernel refused; the caller must end the process.
    """
    if has_capability(CAP_SETPCAP):
        _empty_bounding_set()
        kernel.prctl(kernel.PR_SET_SECUREBITS, _SECUREBITS_LOCKED)
    kernel.prctl(kernel.PR_CAP_AMBIENT, kernel.PR_CAP_AMBIENT_CLEAR_ALL)
    if os.geteuid() == 0 and uid != 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        # A changed user makes /proc/self root's; CUDA names its threads there.
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
    clear_capabilities()


def clear_capabilities() -> None:
    """Empty the effective, permitted and inheritable sets of this thread.

    Raises:
        OSError: the kernel refused.
    """
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITY_VERSION_3, 0))
    empty = ctypes.create_string_buffer(24)
    kernel.syscall(_CAPSET, ctypes.addressof(header), ctypes.addressof(empty))


def give_to(uid: int, folder: str) -> None:
    """Make `uid` the owner of a folder and of what the harness put into it.

    Links are not followed, and a file with a second name is left alone: it may be someone else's.
    Folders below `_DEEPEST` levels are left alone too: no harness puts anything there, but a former
    process of the cage may have, to make whoever walks through run out of stack or descriptors.

    Raises:
        OSError: the folder is missing or is not ours to give.
    """
    fd = os.open(folder, _OPEN_FOLDER)
    try:
        os.fchown(fd, uid, uid)
        _give_content(uid, fd, depth=1)
    finally:
        os.close(fd)


def _give_content(uid: int, folder_fd: int, depth: int) -> None:
    for name in os.listdir(folder_fd):
        entry = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
        is_folder = stat.S_ISDIR(entry.st_mode)
        if not is_folder and entry.st_nlink > 1:
            continue
        os.chown(name, uid, uid, dir_fd=folder_fd, follow_symlinks=False)
        if is_folder and depth < _DEEPEST:
            fd = os.open(name, _OPEN_FOLDER, dir_fd=folder_fd)
            try:
                _give_content(uid, fd, depth + 1)
            finally:
                os.close(fd)


def _answer_as(uid: int, writer: int, wanted: list[tuple[str, int]]) -> int:
    """Write the first path that `uid` cannot use; return the exit status of the asking child."""
    try:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
        blocked = next((path for path, mode in wanted if not _usable(path, mode)), "")
        os.write(writer, os.fsencode(blocked))
    except OSError:
        return 1  # the parent turns this into an InfraError
    return 0


def _usable(path: str, mode: int) -> bool:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True  # absent for everybody: the ruleset skips and reports it
    except OSError:
        return False
    if not os.path.isdir(path):
        return os.access(path, mode)
    if path.startswith(("/proc/", "/dev/nvidia")):
        mode &= ~os.W_OK  # nobody makes files there: what is written lies in files below
    return os.access(path, mode | os.X_OK)


def _without_private_etc(read_paths: tuple[str, ...]) -> tuple[str, ...]:
    if not any(os.path.normpath(p) == "/etc" for p in read_paths):
        return read_paths
    public = tuple(p for p in PUBLIC_ETC if os.path.exists(p))
    return tuple(p for p in read_paths if os.path.normpath(p) != "/etc") + public


def _is_mapped(uid: int) -> bool:
    """Return whether the user namespace of this process knows `uid`."""
    with open("/proc/self/uid_map", encoding="ascii") as table:
        ranges = [[int(n) for n in line.split()] for line in table]
    return any(first <= uid < first + count for first, _, count in ranges)


def _empty_bounding_set() -> None:
    for number in range(_HIGHEST_POSSIBLE_CAPABILITY + 1):
        try:
            kernel.prctl(kernel.PR_CAPBSET_READ, number)
        except OSError:
            return  # past the kernel's last capability
        kernel.prctl(kernel.PR_CAPBSET_DROP, number)
