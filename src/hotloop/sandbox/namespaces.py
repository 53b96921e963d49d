"""Private namespaces: the part of T2 that comes before the cage itself.

The caller becomes a guard outside, its child the init process of a new pid namespace, and its
grandchild returns as the process to cage. The init process only reaps orphans, so the caged one
receives signals like any other process; when it ends the kernel kills whatever is left in there.
Root uses its own right to make namespaces; a plain user gets it from a user namespace.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import struct
from typing import NoReturn

from hotloop.core.units import MIB
from hotloop.errors import SandboxUnavailable
from hotloop.sandbox import credentials, kernel
from hotloop.sandbox.spec import CageSpec

_SHARED_FLAGS = (
    kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWNET
    | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS
)  # fmt: skip
_TMPFS_FLAGS = kernel.MS_NOSUID | kernel.MS_NODEV
_PRIVATE_FOLDERS = ("/tmp", "/dev/shm")
_TMPFS_BYTES = 512 * MIB
_STATUS = struct.Struct("=i")

_entered: tuple[str, ...] = ()


def entered() -> tuple[str, ...]:
    """Return the namespaces that `enter_namespaces` made for this process."""
    return _entered


def flags() -> int:
    """Return the unshare flags that this process needs for a private view of the system."""
    if credentials.has_capability(credentials.CAP_SYS_ADMIN):
        return _SHARED_FLAGS
    return _SHARED_FLAGS | kernel.CLONE_NEWUSER


def enter_namespaces(spec: CageSpec) -> tuple[str, ...]:
    """Move into private namespaces; return in a new process, two forks below the caller.

    `cage.enter` does this for T2 by itself; call it alone only to do something in between.

    The calling process never returns: it waits and ends as the grandchild ends, with the same exit
    code or signal, so its parent can wait for the pid that it knows. Standard output and the like
    are closed in the two processes between, so pipes end when the grandchild ends. /tmp and
    /dev/shm are empty memory of 512 MiB each; paths of the spec that lie there stay visible.

    Args:
        spec: names the paths to keep.

    Returns:
        The names of the namespaces.

    Raises:
        SandboxUnavailable: the machine does not allow it. It is raised in whichever process found
            out, and only there; ending that process ends the others alike.
    """
    global _entered  # noqa: PLW0603  one process, one set of namespaces, for the rest of its life
    wanted = flags()
    uid, gid = os.geteuid(), os.getegid()
    try:
        kernel.unshare(wanted)
        if wanted & kernel.CLONE_NEWUSER:
            map_own_user(uid, gid)
        status_fd = fork_and_mirror()
        prepare_mounts(spec)
        fork_below_init(status_fd)
    except OSError as exc:
        raise SandboxUnavailable(
            f"expected private namespaces (T2), the kernel answered {exc}; allow unprivileged user "
            "namespaces (sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces>0, "
            "AppArmor: kernel.apparmor_restrict_unprivileged_userns=0), or choose T1"
        ) from exc
    names = ("ipc", "mount", "net", "pid", "uts")
    _entered = (*names, "user") if wanted & kernel.CLONE_NEWUSER else names
    return _entered


def map_own_user(uid: int, gid: int) -> None:
    """Keep the same user and group numbers inside a new user namespace.

    Raises:
        OSError: the kernel refused the maps.
    """
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        fd = os.open(f"/proc/self/{name}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)


def prepare_mounts(spec: CageSpec) -> None:
    """Give this mount namespace its own /proc, /tmp and /dev/shm.

    Raises:
        OSError: the kernel refused a mount.
    """
    kept = _hold_hidden(spec)
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("proc", "/proc", kind="proc", flags=_TMPFS_FLAGS | kernel.MS_NOEXEC)
    options = f"size={_TMPFS_BYTES},mode=1777"
    for folder in _PRIVATE_FOLDERS:
        if os.path.isdir(folder):
            kernel.mount("tmpfs", folder, kind="tmpfs", flags=_TMPFS_FLAGS, options=options)
    old_mask = os.umask(0o022)
    for path, fd in kept:
        _bind_back(path, fd)
        os.close(fd)
    os.umask(old_mask)


def fork_and_mirror() -> int:
    """Fork; return in the child, which dies with its parent. The parent waits and mirrors it.

    Returns:
        The pipe into which the wait status of the caged process goes.

    Raises:
        OSError: there is no room for another process.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        _mirror(child, reader)
    os.close(reader)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    # The parent lives in another pid namespace, where getppid cannot see it: ask the pipe instead.
    poll = select.poll()
    poll.register(writer, 0)
    if poll.poll(0):
        os._exit(1)
    return writer


def fork_below_init(status_fd: int) -> None:
    """Fork as the first process of a pid namespace; return in the child. The parent reaps.

    Raises:
        OSError: there is no room for another process.
    """
    child = os.fork()
    if child:
        _reap_until(child, status_fd)
    os.close(status_fd)


def _mirror(child: int, reader: int) -> NoReturn:
    """Wait for the namespace to end, then end in the way that its caged process did."""
    kernel.close_descriptors_except([reader])
    status = os.read(reader, _STATUS.size)
    _, init_status = os.waitpid(child, 0)
    wait_status = _STATUS.unpack(status)[0] if len(status) == _STATUS.size else init_status
    if os.WIFSIGNALED(wait_status):
        number = os.WTERMSIG(wait_status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(wait_status) & 0xFF)


def _reap_until(child: int, writer: int) -> NoReturn:
    """Be the init process: reap every orphan, report how the caged process ended, end."""
    kernel.close_descriptors_except([writer])
    while True:
        pid, status = os.wait()
        if pid == child:
            os.write(writer, _STATUS.pack(status))
            os._exit(0)


def _hold_hidden(spec: CageSpec) -> list[tuple[str, int]]:
    """Open the paths of the spec that a new /tmp or /dev/shm would hide."""
    held = []
    for path in (spec.work_dir, *spec.read_paths, *spec.write_paths):
        real = os.path.realpath(path)
        inside = any(real.startswith(f"{folder}/") for folder in _PRIVATE_FOLDERS)
        if inside and os.path.exists(real):
            held.append((real, os.open(real, os.O_PATH | os.O_CLOEXEC)))
    return sorted(held)


def _bind_back(path: str, fd: int) -> None:
    if os.path.isdir(f"/proc/self/fd/{fd}"):
        os.makedirs(path, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    kernel.mount(f"/proc/self/fd/{fd}", path, flags=kernel.MS_BIND | kernel.MS_REC)
