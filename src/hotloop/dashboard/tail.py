"""A journal while it grows: whether anything is new.

Looking costs two `stat` calls; the journal is opened only where they differ.
"""

from __future__ import annotations

from pathlib import Path

from hotloop.store.sqlite import JOURNAL_FILE

Signature = tuple[tuple[int, int, int] | None, ...]
"""Inode, size and time of the journal and of its WAL; None where a file is missing."""


def signature(folder: Path) -> Signature:
    """Return what changes whenever the journal of a folder may have changed."""
    return tuple(_mark(folder / name) for name in (JOURNAL_FILE, f"{JOURNAL_FILE}-wal"))


def _mark(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    # A reader may make the WAL of a finished run, empty: that is no news.
    return (found.st_ino, found.st_size, found.st_mtime_ns) if found.st_size else None
