"""The journal's schema and how an older one becomes today's.

`user_version` holds the schema's number and `application_id` marks the file as a journal.
Migrations go forward only, each in one transaction. A journal of a newer hotloop is refused.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from hotloop.core import kill_points
from hotloop.errors import ForeignRun

APPLICATION_ID = 0x484C4F50
"""`HLOP` in ASCII, for SQLite's `application_id`."""

Migrations = tuple[tuple[str, ...], ...]

MIGRATIONS: Migrations = (
    (
        """CREATE TABLE events (
               seq INTEGER PRIMARY KEY AUTOINCREMENT,
               kind TEXT NOT NULL,
               payload TEXT NOT NULL,
               written_at REAL NOT NULL
           )""",
        "CREATE INDEX events_by_kind ON events (kind, seq)",
        """CREATE TRIGGER events_keep BEFORE UPDATE ON events
           BEGIN SELECT RAISE(ABORT, 'events are append-only'); END""",
        """CREATE TRIGGER events_stay BEFORE DELETE ON events
           BEGIN SELECT RAISE(ABORT, 'events are append-only'); END""",
        """CREATE TABLE candidates (
               id TEXT PRIMARY KEY,
               sha256 TEXT NOT NULL
           )""",
        """CREATE TABLE attempts (
               id INTEGER PRIMARY KEY,
               candidate_id TEXT REFERENCES candidates (id),
               status TEXT,
               objective REAL,
               record TEXT NOT NULL
           )""",
        "CREATE TABLE spending (one INTEGER PRIMARY KEY CHECK (one = 1), seconds REAL NOT NULL)",
        "INSERT INTO spending VALUES (1, 0.0)",
    ),
    (
        """CREATE TABLE leases (
               epoch INTEGER PRIMARY KEY,
               candidate_id TEXT NOT NULL,
               tier TEXT NOT NULL,
               attempt INTEGER NOT NULL,
               judge TEXT NOT NULL,
               expires_at REAL NOT NULL,
               state TEXT NOT NULL,
               failure TEXT,
               result_seq INTEGER REFERENCES events (seq),
               UNIQUE (candidate_id, tier, attempt)
           )""",
        """CREATE UNIQUE INDEX one_verdict ON leases (candidate_id, tier)
           WHERE state = 'judged'""",
        "CREATE INDEX attempts_by_candidate ON attempts (candidate_id)",
    ),
)
"""Statements from version n to n + 1, at place n. A released entry is never edited."""

SCHEMA_VERSION = len(MIGRATIONS)


def check_version(
    connection: sqlite3.Connection, folder: Path, *, newest: int = SCHEMA_VERSION
) -> int:
    """Return the journal's schema version, `newest` at most; 0 for an empty file.

    Raises:
        ForeignRun: the file is no journal, or a newer hotloop wrote it.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION_ID and (tables or version or application):
        raise ForeignRun(f"{folder} holds a database that is no hotloop run; use another --out")
    if version > newest:
        raise ForeignRun(
            f"{folder} was written by a newer hotloop (schema {version}, this one knows "
            f"{newest}); upgrade hotloop or use another --out"
        )
    return int(version)


def migrate(
    connection: sqlite3.Connection, folder: Path, *, migrations: Migrations = MIGRATIONS
) -> None:
    """Bring the journal to the version that `migrations` end at, one transaction a step.

    Raises:
        ForeignRun: the file is no journal, or a newer hotloop wrote it.
    """
    newest = len(migrations)
    for version in range(check_version(connection, folder, newest=newest), newest):
        kill_points.reach("before-migration")
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in migrations[version]:
                connection.execute(statement)
                kill_points.reach("inside-migration")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {version + 1}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # a full disk has rolled it back already
                connection.execute("ROLLBACK")
            raise
        kill_points.reach("after-migration")
