"""Turn what SQLite and the file system report into a StoreError that says what to do.

Decided by error code, never by message text.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote

from hotloop.errors import ForeignRun, StoreError
from hotloop.store.snapshots import JOURNAL_FILE, newest_good

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_REFUSED = {errno.EROFS, errno.EACCES, errno.EPERM}
_NO_DESCRIPTORS = {errno.EMFILE, errno.ENFILE}
_NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}

FILES_OF_A_JOURNAL = 4
"""Database, WAL, shared memory, and for a moment the folder."""


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


def is_there(folder: Path) -> bool:
    """Return whether anything has a path that a folder is wanted at.

    Raises:
        ForeignRun: a file lies where a folder above it would have to be.
    """
    above = next((path for path in folder.parents if path.exists()), None)
    if above is not None and not above.is_dir():
        raise ForeignRun(f"{folder}: {above} is a file and can hold no folder; use another --out")
    return folder.exists()


def damaged(folder: Path, why: str) -> str:
    """Return what to say of a journal that is not whole: the way back to the newest snapshot."""
    found = newest_good(folder)
    if found is None:
        cure = "restore the folder from a copy, or start again with another --out"
    else:
        journal, copy = quote(str(folder / JOURNAL_FILE)), quote(str(found))
        cure = (
            f"the newest good snapshot is {found}; to go on from there: rm -f {journal}-wal "
            f"{journal}-shm && cp {copy} {journal}, then run the same command again"
        )
    return f"{folder}: the journal is damaged ({' '.join(why.split())}); {cure}"


def _describe_sqlite(exc: sqlite3.Error, folder: Path) -> str:
    # Extended names look like SQLITE_READONLY_DIRECTORY; the second word is the primary code.
    name = getattr(exc, "sqlite_errorname", "") or "SQLITE_ERROR"
    primary = name.split("_")[1]
    if primary == "FULL" or (primary == "IOERR" and _has_no_space(folder)):
        return _full(folder)
    if primary == "CANTOPEN" and (cause := _why_nothing_opens(folder)) is not None:
        return _describe_os(cause, folder)
    if primary in ("READONLY", "CANTOPEN", "PERM", "AUTH"):
        return _refused(folder, name)
    if primary in ("CORRUPT", "NOTADB"):
        return damaged(folder, f"{name}: {exc}")
    if primary in ("BUSY", "LOCKED"):
        return f"{folder}: another process keeps the journal locked ({name}); end it and run again"
    return f"{folder}: the journal could not be read or written ({name}: {exc}); check the disk"


def _describe_os(exc: OSError, folder: Path) -> str:
    if exc.errno in _FULL:
        return _full(folder)
    if exc.errno in _REFUSED:
        return _refused(folder, exc.strerror or "refused")
    if exc.errno in _NO_DESCRIPTORS:
        return (
            f"{folder}: too many files are open; raise the limit (ulimit -n) and run the same "
            "command again, what was recorded is safe"
        )
    if exc.errno in _NO_LOCKS:
        return f"{folder}: this file system has no locks; use an --out on a local disk"
    return f"{folder}: {exc.strerror or exc} ({exc.filename or 'run folder'}); check the disk"


def _has_no_space(folder: Path) -> bool:
    # SQLite reports a shared-memory file that cannot grow as an I/O error without the cause.
    try:
        return os.statvfs(folder).f_bavail == 0
    except OSError:
        return False


def _why_nothing_opens(folder: Path) -> OSError | None:
    """Return why not even the folder can be opened; None when it can, so the file is at fault."""
    opened: list[int] = []
    try:
        for _ in range(FILES_OF_A_JOURNAL):
            opened.append(os.open(folder, os.O_RDONLY))
    except OSError as exc:
        return exc
    finally:
        for descriptor in opened:
            os.close(descriptor)
    return None


def _full(folder: Path) -> str:
    return (
        f"{folder}: the disk is full; free some space and run the same command again, "
        "what was recorded is safe"
    )


def _refused(folder: Path, why: str) -> str:
    return f"{folder}: the run folder cannot be written ({why}); make it writable or use --out"
