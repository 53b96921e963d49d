"""What isolation this machine can give: found by trying it in children, not by reading versions.

Parts are switched off in many ways (boot parameters, AppArmor, a container's own filter), so each
tier is entered for real in a throw-away process and the answer is what happened.
"""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from hotloop.core import record
from hotloop.core.record import JsonValue
from hotloop.errors import HotloopError, InfraError
from hotloop.sandbox import credentials, kernel, landlock, namespaces, seccomp
from hotloop.sandbox.cage import enter
from hotloop.sandbox.paths import default_paths
from hotloop.sandbox.spec import CageSpec, Tier

NOBODY = 65534
"""The user that the trial drops to when root asks."""


@dataclass(frozen=True)
class Capabilities:
    """The isolation of this machine.

    `missing` has one line for each thing that is absent, with what to do about it. `best_tier` is
    the highest tier that a child of this process could enter.
    """

    kernel: str
    machine: str
    root: bool
    landlock_abi: int
    seccomp: bool
    user_namespaces: bool
    best_tier: Tier
    missing: tuple[str, ...] = ()

    def to_json(self) -> JsonValue:
        """Return plain JSON values."""
        return record.to_json(self)


def probe() -> Capabilities:
    """Try every tier in a throw-away child and report; nothing changes in this process.

    Raises:
        InfraError: no temporary folder could be made.
        OSError: no child could be forked.
    """
    abi = landlock.abi_version()
    filters = kernel.is_x86_64() and seccomp.is_available()
    missing = [*_kernel_gaps(abi, filters), *_user_gaps()]
    best, refused = _best_tier()
    if refused:
        missing.append(refused)
    return Capabilities(
        kernel=platform.release(),
        machine=platform.machine(),
        root=os.geteuid() == 0,
        landlock_abi=abi,
        seccomp=filters,
        user_namespaces=not _refusal_in_child(_try_user_namespace),
        best_tier=best,
        missing=tuple(missing),
    )


def _best_tier() -> tuple[Tier, str]:
    """Return the highest tier that could be entered, and why the next one could not."""
    best = Tier.NONE
    paths = default_paths(None)
    for tier in (Tier.EMBEDDED, Tier.NAMESPACES):
        with _folder_to_try_in() as folder:
            spec = CageSpec(tier, folder, paths.read, paths.write, drop_uid=NOBODY)
            refused = _refusal_in_child(partial(_try_cage, spec))
        if refused:
            return best, f"{tier}: {refused}"
        best = tier
    return best, ""


@contextmanager
def _folder_to_try_in() -> Iterator[str]:
    try:
        folder = tempfile.mkdtemp(prefix="hotloop-probe-")
    except OSError as exc:
        raise InfraError(
            f"expected a temporary folder to try the cage in, the system answered: {exc}; free "
            "some space, or set TMPDIR to a folder that can be written"
        ) from exc
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _refusal_in_child(action: Callable[[int], None]) -> str:
    """Run an action in a forked child that then ends; return why it failed, or an empty string.

    Args:
        action: gets the file descriptor that it must leave open.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reader)
            action(writer)
            code = 0
        except (HotloopError, OSError) as exc:
            os.write(writer, str(exc).encode())
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        reason = pipe.read().decode("utf-8", "replace")
    _, status = os.waitpid(child, 0)
    if status == 0:
        return ""
    return reason or f"the trial process ended with wait status {status}"


def _try_cage(spec: CageSpec, keep_fd: int) -> None:
    enter(spec, keep_fds=(0, 1, 2, keep_fd))


def _try_user_namespace(_: int) -> None:
    uid, gid = os.geteuid(), os.getegid()
    kernel.unshare(kernel.CLONE_NEWUSER)
    namespaces.map_own_user(uid, gid)


def _kernel_gaps(abi: int, filters: bool) -> list[str]:
    gaps = []
    if not kernel.is_x86_64():
        gaps.append(f"system call filter: no table for {platform.machine()}; use 64-bit x86")
    elif not filters:
        gaps.append("seccomp: not in this kernel; enable CONFIG_SECCOMP_FILTER")
    if abi == 0:
        gaps.append("Landlock: not enabled; use Linux 5.13+ and add landlock to lsm= at boot")
    else:
        gaps += [f"{gap}; use a newer kernel" for gap in landlock.gaps(abi)]
    return gaps


def _user_gaps() -> list[str]:
    """Name what is weaker because root cannot become somebody else here."""
    if os.geteuid() != 0:
        return []
    anywhere = CageSpec(Tier.EMBEDDED, "/nonexistent", default_paths(None).read, drop_uid=NOBODY)
    reason = credentials.reason_to_stay_root(anywhere)
    if not reason:
        return []
    return [
        f"user: {reason}, so uid 0 stays (without capabilities); install Python and the virtual "
        "environment outside private folders, and let containers map and set other users"
    ]
