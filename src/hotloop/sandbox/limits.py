"""Resource limits of a cage, by setrlimit.

RLIMIT_NPROC counts every thread of the user, also those outside the cage, so the limit is the count
of now plus what the cage may add. Inside an own user namespace the kernel counts from zero.
"""

from __future__ import annotations

import os
import resource

from hotloop.sandbox.spec import Limits


def apply(limits: Limits, *, uid: int, counts_from_zero: bool) -> None:
    """Set the limits of this process and of everything it starts; they cannot be raised again.

    Args:
        limits: what the cage may use.
        uid: the user that the cage will run as.
        counts_from_zero: the process is in a user namespace of its own.

    Raises:
        OSError: the kernel refused.
    """
    already = 0 if counts_from_zero else threads_of_user(uid)
    lower(resource.RLIMIT_CORE, 0)
    lower(resource.RLIMIT_DATA, limits.data_bytes)
    lower(resource.RLIMIT_FSIZE, limits.file_bytes)
    lower(resource.RLIMIT_NOFILE, limits.open_files)
    lower(resource.RLIMIT_NPROC, already + limits.processes)
    if limits.cpu_s is not None:
        lower(resource.RLIMIT_CPU, limits.cpu_s)


def lower(kind: int, value: int) -> None:
    """Set soft and hard limit to `value`, or leave a hard limit that is lower already.

    Raises:
        OSError: the kernel refused.
    """
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(kind, (value, value))


def threads_of_user(uid: int) -> int:
    """Count the threads of a user that /proc shows; a process that ends meanwhile counts 0."""
    total = 0
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            if os.stat(f"/proc/{name}").st_uid == uid:
                total += len(os.listdir(f"/proc/{name}/task"))
        except OSError:
            continue  # it ended, or /proc hides it
    return total
