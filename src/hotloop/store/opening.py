"""Opens a run's journal for its one writer, and sees that it is whole."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from hotloop.errors import StoreError
from hotloop.store.blobs import BLOB_FOLDER
from hotloop.store.failure import damaged
from hotloop.store.migrations import check_version, migrate
from hotloop.store.snapshots import SNAPSHOT_FOLDER

BUSY_TIMEOUT_S = 30.0
"""Readers never block the writer in WAL mode; this covers another program's checkpoint."""

OLDEST_SQLITE = (3, 27, 0)
"""Has `VACUUM INTO`. Versions below 3.51.3 can damage a WAL where two connections write or
checkpoint at once (https://sqlite.org/wal.html); here one does, all others only read."""


def open_journal(path: Path, *, is_local: bool) -> sqlite3.Connection:
    """Return a connection to a whole journal of today's schema; create the file when missing.

    Raises:
        ForeignRun: the file is no journal, or a newer hotloop wrote it.
        StoreError: it is damaged or was emptied, or SQLite is too old.
        sqlite3.Error: it cannot be read or written.
    """
    check_sqlite(sqlite3.sqlite_version_info)
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    try:
        check_not_emptied(path.parent, check_version(connection, path.parent))
        migrate(connection, path.parent)
        connection.execute(f"PRAGMA journal_mode = {'WAL' if is_local else 'DELETE'}")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise StoreError(damaged(path.parent, found))
    except BaseException:
        connection.close()
        raise
    return connection


def check_not_emptied(folder: Path, version: int) -> None:
    """Check that a journal without a schema is a new one: a run in its place would begin anew.

    Args:
        folder: the run's.
        version: of the journal's schema; 0 for an empty file.

    Raises:
        StoreError: kernels or snapshots of a run are there.
    """
    if version == 0 and any((folder / name).is_dir() for name in (BLOB_FOLDER, SNAPSHOT_FOLDER)):
        raise StoreError(damaged(folder, "it is empty, and the rest of its run is there"))


def check_sqlite(version: tuple[int, ...]) -> None:
    """Check that SQLite can do what the journal needs.

    Raises:
        StoreError: it is too old.
    """
    if version < OLDEST_SQLITE:
        wanted, got = (".".join(map(str, numbers)) for numbers in (OLDEST_SQLITE, version))
        raise StoreError(
            f"expected SQLite {wanted} or newer, got {got}; use a Python that has a newer one"
        )


def remove_partial_files(folder: Path) -> None:
    """Remove what a writer left that died between write and rename.

    The lock on the folder says that nobody writes now.
    """
    for pattern in (f"{BLOB_FOLDER}/*/*.tmp*", f"{SNAPSHOT_FOLDER}/*.tmp*"):
        for path in folder.glob(pattern):
            path.unlink()
