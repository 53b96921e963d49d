"""One writer per run folder: an advisory lock on a file in it.

The kernel frees the lock when its holder ends, however it ends, so nothing is ever stale. It does
not reach across hosts on every network file system.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from pathlib import Path

from hotloop.core import kill_points
from hotloop.errors import RunHeld
from hotloop.store.failure import store_errors

LOCK_FILE = "lock"


class FolderLock:
    """Holds a run folder until `release`, or until the process ends."""

    def __init__(self, folder: Path) -> None:
        """Take the lock without waiting.

        Raises:
            RunHeld: another process holds it; names its pid and host.
            StoreError: the file cannot be opened or written.
        """
        kill_points.reach("before-lock")
        with store_errors(folder):
            descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                _take(descriptor, folder)
            except BaseException:
                os.close(descriptor)
                raise
        self._descriptor: int | None = descriptor
        kill_points.reach("after-lock")

    def release(self) -> None:
        """Free the folder. Idempotent."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _take(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RunHeld(
            f"{folder} is held by {_read_holder(descriptor)}; wait for it, end it, or use another "
            "--out"
        ) from None
    holder = json.dumps({"pid": os.getpid(), "host": socket.gethostname()})
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, holder.encode(), 0)


def _read_holder(descriptor: int) -> str:
    try:
        holder = json.loads(os.pread(descriptor, 4096, 0))
        return f"pid {holder['pid']} on host {holder['host']}"
    except (ValueError, KeyError, TypeError):
        # The holder has the lock but has not written its name yet.
        return "another process"
