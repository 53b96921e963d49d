"""A cage for a process that a trusted tool watches: the user and the files of a candidate's.

The tool talks with what it watches through sockets and has threads there before the first line of
ours, so the system call filter and the rules about networks and signals stay off. For a process
that holds no host code of a candidate; what it must not do is read or write more than one may.
"""

from __future__ import annotations

import os
from dataclasses import replace

from hotloop.errors import SandboxUnavailable
from hotloop.sandbox import credentials, kernel, landlock
from hotloop.sandbox.spec import CageSpec, Tier

_SHARED_MEMORY = "/dev/shm"


def confine_files(spec: CageSpec) -> int:
    """Give up rights, and reach only the files that `spec` names, for good. Call it early.

    Threads that are there already keep the files that they could reach; those that come later do
    not have them. At T0 nothing is taken away.

    Args:
        spec: a candidate's cage. Its work folder changes its owner to the cage's user.

    Returns:
        The user id.

    Raises:
        SandboxUnavailable: the kernel refused a step. The process must end.
    """
    if spec.tier is Tier.NONE:
        return os.geteuid()
    # That of a candidate at T2 is its own; here it would be every user's.
    own = tuple(path for path in spec.write_paths if path != _SHARED_MEMORY)
    spec = replace(spec, write_paths=own)
    uid, read_paths, _ = credentials.choose_uid(spec)
    try:
        if os.geteuid() == 0 and uid != 0:
            credentials.give_to(uid, spec.work_dir)
        os.chdir(spec.work_dir)
        credentials.drop(uid)
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    except OSError as exc:
        raise SandboxUnavailable(
            f"expected to give up rights and become uid {uid}, the kernel answered {exc}"
        ) from exc
    landlock.restrict(spec, read_paths, files_only=True)
    return uid
