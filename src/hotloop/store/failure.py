"""Turn what SQLite and the file system report into a StoreError that says what to do.

Decided by error code, never by message text.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hotloop.errors import StoreError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_REFUSED = {errno.EROFS, errno.EACCES, errno.EPERM}


@contextmanager
def store_errors(folder: Path) -> Iterator[None]:
    """Raise StoreError for every database or file error in the block.

    Raises:
        StoreError: names the folder, the cause and the remedy.
    """
    try:
        yield
    except sqlite3.Error as exc:
        raise StoreError(_describe_sqlite(exc, folder)) from exc
    except OSError as exc:
        raise StoreError(_describe_os(exc, folder)) from exc


def _describe_sqlite(exc: sqlite3.Error, folder: Path) -> str:
    # Extended names look like SQLITE_READONLY_DIRECTORY; the second word is the primary code.
    name = getattr(exc, "sqlite_errorname", "") or "SQLITE_ERROR"
    primary = name.split("_")[1]
    if primary == "FULL":
        return _full(folder)
    if primary in ("READONLY", "CANTOPEN", "PERM", "AUTH"):
        return _refused(folder, name)
    if primary in ("CORRUPT", "NOTADB"):
        return (
            f"{folder}: the journal is damaged ({name}: {exc}); restore the folder from a copy, "
            "or start again with another --out"
        )
    if primary in ("BUSY", "LOCKED"):
        return f"{folder}: another process keeps the journal locked ({name}); end it and run again"
    return f"{folder}: the journal could not be read or written ({name}: {exc}); check the disk"


def _describe_os(exc: OSError, folder: Path) -> str:
    if exc.errno in _FULL:
        return _full(folder)
    if exc.errno in _REFUSED:
        return _refused(folder, exc.strerror or "refused")
    return f"{folder}: {exc.strerror or exc} ({exc.filename or 'run folder'}); check the disk"


def _full(folder: Path) -> str:
    return (
        f"{folder}: the disk is full; free some space and run the same command again, "
        "what was recorded is safe"
    )


def _refused(folder: Path, why: str) -> str:
    return f"{folder}: the run folder cannot be written ({why}); make it writable or use --out"
