"""One writer per run folder: an advisory lock on a file in it.

The kernel frees the lock when its holder ends, however it ends, so nothing is ever stale. It does
not reach across hosts on every network file system.

The file names the holder. It also takes the last words of one that the journal failed, as on a full
disk: its bytes are there from the beginning, so they can be written when no others can.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from contextlib import suppress
from pathlib import Path

from hotloop.core import kill_points
from hotloop.errors import RunHeld
from hotloop.store.failure import store_errors

LOCK_FILE = "lock"
RESERVED_BYTES = 4096
"""Of the file, filled up with spaces."""
WORDS_CHARACTERS = 300
"""As JSON they take 12 bytes each at most."""


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

    def leave_words(self, words: str) -> None:
        """Say why the holder ends, where the journal cannot; the next holder's name replaces it."""
        if self._descriptor is not None:
            with suppress(OSError):  # then there is no way left to say it
                _write(self._descriptor, {"failed": words[:WORDS_CHARACTERS]})

    def release(self) -> None:
        """Free the folder. Idempotent."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def last_words(folder: Path) -> str:
    """Return why the last holder ended, where its journal could not take it; else empty."""
    try:
        told = json.loads((folder / LOCK_FILE).read_text(encoding="utf-8")).get("failed", "")
    except (OSError, ValueError, AttributeError, RecursionError):
        return ""
    return told if isinstance(told, str) else ""


def _take(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RunHeld(
            f"{folder} is held by {_read_holder(descriptor)}; wait for it, end it, or use another "
            "--out"
        ) from None
    _write(descriptor, {})


def _write(descriptor: int, words: dict[str, str]) -> None:
    holder = json.dumps({"pid": os.getpid(), "host": socket.gethostname(), **words})
    # Over what is there: a file that is cut first gives its block away.
    os.pwrite(descriptor, holder.encode().ljust(RESERVED_BYTES), 0)
    os.ftruncate(descriptor, RESERVED_BYTES)


def _read_holder(descriptor: int) -> str:
    try:
        holder = json.loads(os.pread(descriptor, 4096, 0))
        return f"pid {holder['pid']} on host {holder['host']}"
    except (ValueError, KeyError, TypeError):
        # The holder has the lock but has not written its name yet.
        return "another process"
