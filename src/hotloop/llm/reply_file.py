"""Reply file: what a file in a folder says, or why it cannot be taken for a reply yet.

Whoever answers may be confined to the folder, so no link is followed: it leads to files that they
cannot read, and a reply is shown to the model again.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path

MAX_REPLY_BYTES = 4_000_000
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_ADVICE = "no call is spent on it, and its prompt stays open"


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at a file found."""

    text: str | None
    """The reply; None where it is none."""
    fault: str = ""
    """Why it is none and what to do, in one line; other words after each change of the file."""


def look(path: Path) -> Look:
    """Return what a file says.

    Raises:
        FileNotFoundError: there is none.
        OSError: it cannot be read.
    """
    try:
        descriptor = os.open(path, _OPEN)
    except OSError as exc:
        if exc.errno != errno.ELOOP:
            raise
        return _fault(path, os.lstat(path), "is a symbolic link; put the reply itself there")
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return _fault(path, found, "is no plain file; put a text file there")
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_REPLY_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > MAX_REPLY_BYTES:
        return _fault(path, found, f"is longer than {MAX_REPLY_BYTES:,} bytes; shorten it")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return _fault(path, found, "is no UTF-8 text; rewrite it")
    if not text.strip():
        return _fault(path, found, "is empty; write the reply to it")
    return Look(text)


def _fault(path: Path, found: os.stat_result, told: str) -> Look:
    # Down to the millisecond, so that the line is another one after each change.
    second, nanosecond = divmod(found.st_mtime_ns, 10**9)
    written = f"{time.strftime('%H:%M:%S', time.localtime(second))}.{nanosecond // 10**6:03d}"
    return Look(None, f"{path.name} (of {written}) {told}: {_ADVICE}")
