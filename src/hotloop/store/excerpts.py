"""Parts of a journal, for those who look at it while it grows: what is new, one attempt, its calls.

Everything here works on a connection that its caller owns, and reads.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any, NamedTuple

from hotloop.store.rows import StoredEvent


class LastEvent(NamedTuple):
    """The newest line of a journal."""

    seq: int
    written_at: float
    """Seconds since the epoch."""


def read_last_event(connection: sqlite3.Connection) -> LastEvent:
    """Return the newest event; a run that has begun has one."""
    row = connection.execute(
        "SELECT seq, written_at FROM events ORDER BY seq DESC LIMIT 1"
    ).fetchone()
    return LastEvent(int(row[0]), float(row[1]))


def read_first_written_at(connection: sqlite3.Connection) -> float:
    """Return when the first event was written, seconds since the epoch."""
    row = connection.execute("SELECT written_at FROM events ORDER BY seq LIMIT 1").fetchone()
    return float(row[0])


def read_events_of(
    connection: sqlite3.Connection, kinds: Sequence[str], after: int, without: Sequence[str]
) -> list[StoredEvent]:
    """Return events of some kinds, in order, without what stands at some JSON paths.

    SQLite cuts the paths out four times faster than Python parses them.
    """
    payload = f"json_remove(payload{', ?' * len(without)})" if without else "payload"
    rows = connection.execute(
        f"SELECT seq, kind, {payload}, written_at FROM events "
        f"WHERE kind IN ({', '.join('?' * len(kinds))}) AND seq > ? ORDER BY seq",
        (*without, *kinds, after),
    ).fetchall()
    return [StoredEvent(seq, kind, json.loads(text), at) for seq, kind, text, at in rows]


def read_attempt_record(connection: sqlite3.Connection, attempt_id: int) -> dict[str, Any] | None:
    """Return one attempt as JSON values; None where there is none."""
    row = connection.execute("SELECT record FROM attempts WHERE id = ?", (attempt_id,)).fetchone()
    return None if row is None else dict(json.loads(row[0]))


def read_call_notes(
    connection: sqlite3.Connection, kinds: Sequence[str], attempt_id: int
) -> list[StoredEvent]:
    """Return the notes of some kinds whose key names one attempt, in order."""
    rows = connection.execute(
        "SELECT seq, kind, payload, written_at FROM events "
        f"WHERE kind IN ({', '.join('?' * len(kinds))}) "
        "AND json_extract(payload, '$.key.attempt') = ? ORDER BY seq",
        (*kinds, attempt_id),
    ).fetchall()
    return [StoredEvent(seq, kind, json.loads(text), at) for seq, kind, text, at in rows]
