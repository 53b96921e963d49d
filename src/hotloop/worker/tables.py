"""Tables: what `prepare()` had made in device memory, on its way to the process that replays.

They may be as large as the parameters (packed or transposed weights), so they travel beside the
messages, as one memory file. The candidate's process writes it and seals it. From then on nobody
can write, shrink or grow it, the candidate included, and a seal cannot be taken off (fcntl(2),
"File Sealing"): what the judge has checked stays as it is. It takes no other kind of file.

Not here: where in the file each table lies (`recording.py` checks that).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAX_TABLES_BYTES = 2 << 30
"""Of one forward together. Host memory holds them once, the device once a set of the arena."""
PIECE_BYTES = 64 << 20
"""How much is copied at a time."""
_ACCESS = os.O_RDONLY | os.O_WRONLY | os.O_RDWR
"""Mask of the access mode among a file's flags: `O_ACCMODE` in fcntl(2)."""
_FIXED = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW


class TablesRefused(Exception):  # noqa: N818  named like the other refusals of a recording
    """What came as tables is no sealed memory file of a reasonable size."""


@dataclass(frozen=True, slots=True)
class Tables:
    """An open file of tables; whoever holds it closes it."""

    fd: int
    size_bytes: int

    @classmethod
    def take(cls, fds: Sequence[int]) -> Tables | None:
        """Take over the descriptors that came with a recording; None where there are none.

        Raises:
            TablesRefused: they are not one sealed memory file of at most `MAX_TABLES_BYTES`; all
                are closed then.
        """
        if not fds:
            return None
        try:
            if len(fds) != 1:
                raise TablesRefused(f"expected the tables in one memory file, got {len(fds)} files")
            return cls(fds[0], _sealed_bytes(fds[0]))
        except TablesRefused:
            for fd in fds:
                os.close(fd)
            raise

    @classmethod
    def open(cls, path: Path) -> Tables:
        """Open a copy that the judge made; no link is followed.

        Raises:
            OSError: there is no such file, or it is a link.
            ValueError: it is no regular file.
        """
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            os.close(fd)
            raise ValueError(f"expected a regular file of tables at {path}")
        return cls(fd, info.st_size)

    def read(self, offset: int, n_bytes: int) -> bytes:
        """Return a part of the file.

        Raises:
            ValueError: the file ends before.
        """
        data = os.pread(self.fd, n_bytes, offset)
        if len(data) != n_bytes:
            raise ValueError(f"expected {n_bytes} bytes of tables at {offset}, got {len(data)}")
        return data

    def copy_to(self, path: Path) -> None:
        """Write a copy to a new file that only this user can read.

        Raises:
            OSError: it is there already, or it cannot be written.
        """
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        # A duplicate shares its place in the file; nobody else reads from there.
        with os.fdopen(os.dup(self.fd), "rb") as source, os.fdopen(target, "wb") as sink:
            source.seek(0)
            shutil.copyfileobj(source, sink, PIECE_BYTES)

    def close(self) -> None:
        """Close the file; once."""
        os.close(self.fd)


class TableWriter:
    """Writes a file of tables and seals it; in the candidate's process."""

    def __init__(self) -> None:
        self._fd: int | None = None
        self.size_bytes = 0

    def add(self, pieces: Iterable[Any]) -> int:
        """Append one table, given as buffers of bytes; return where it begins in the file.

        Raises:
            OSError: there is no memory for it.
        """
        if self._fd is None:
            self._fd = os.memfd_create("hotloop-tables", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        start = self.size_bytes
        for piece in pieces:
            left = memoryview(piece).cast("B")
            while left:
                written = os.write(self._fd, left)
                self.size_bytes += written
                left = left[written:]
        return start

    def seal(self) -> int | None:
        """Return the sealed file, which is the caller's to close; None where nothing was added."""
        fd, self._fd = self._fd, None
        if fd is not None:
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _FIXED | fcntl.F_SEAL_SEAL)
        return fd

    def close(self) -> None:
        """Throw away what was not sealed. Idempotent."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)


def _sealed_bytes(fd: int) -> int:
    """Return the size of a memory file that can change no more.

    Raises:
        TablesRefused: it is another kind of file, it can change, it cannot be read, or it is too
            large.
    """
    try:
        seals = fcntl.fcntl(fd, fcntl.F_GET_SEALS)
        mode = fcntl.fcntl(fd, fcntl.F_GETFL)
    except OSError:
        raise TablesRefused("expected the tables in a memory file, got another file") from None
    if seals & _FIXED != _FIXED:
        raise TablesRefused("expected the tables in a sealed file, got one that can be changed")
    # Sealed, it can still be opened for writing only, through /proc.
    if mode & _ACCESS not in (os.O_RDONLY, os.O_RDWR):
        raise TablesRefused("expected the tables in a file that can be read, got one that cannot")
    size = os.fstat(fd).st_size
    if not 0 < size <= MAX_TABLES_BYTES:
        raise TablesRefused(f"expected at most {MAX_TABLES_BYTES} bytes of tables, got {size}")
    return size
