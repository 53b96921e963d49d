"""Events to tables, and tables to records: the journal's only SQL besides its schema.

`events` is the truth. `apply_event` derives the other tables from one event, when it is written and
when they are rebuilt. Everything here works on a connection that its caller owns.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any, NamedTuple

from hotloop.core.attempt import Attempt, RunSpec
from hotloop.core.problem import Problem
from hotloop.core.record import dumps, from_json
from hotloop.store import leases


class StoredEvent(NamedTuple):
    """One line of the journal."""

    seq: int
    kind: str
    payload: Mapping[str, Any]
    written_at: float
    """Seconds since the epoch."""


def append_event(
    connection: sqlite3.Connection, kind: str, payload: Mapping[str, Any], written_at: float
) -> None:
    """Append an event and derive from it; the caller holds a transaction."""
    text = dumps(payload)
    cursor = connection.execute(
        "INSERT INTO events (kind, payload, written_at) VALUES (?, ?, ?)", (kind, text, written_at)
    )
    assert cursor.lastrowid is not None, "an INSERT gives a number"
    apply_event(connection, StoredEvent(cursor.lastrowid, kind, json.loads(text), written_at))


def apply_event(connection: sqlite3.Connection, event: StoredEvent) -> None:
    """Bring the derived tables up to date with one event."""
    kind, payload = event.kind, event.payload
    if kind == "proposed" and payload["sha256"] is not None:
        connection.execute(
            "INSERT OR IGNORE INTO candidates (id, sha256) VALUES (?, ?)",
            (payload["attempt"]["candidate_id"], payload["sha256"]),
        )
    if kind in ("proposed", "concluded"):
        _put_attempt(connection, payload["attempt"])
    if kind == "spent":
        connection.execute("UPDATE spending SET seconds = seconds + ?", (payload["seconds"],))
    if kind == "stopped" or kind in leases.KINDS:
        leases.apply_lease(connection, event.seq, kind, payload)


def rebuild(connection: sqlite3.Connection) -> None:
    """Derive all tables afresh from the events; the caller holds a transaction."""
    connection.execute("DELETE FROM leases")
    connection.execute("DELETE FROM attempts")
    connection.execute("DELETE FROM candidates")
    connection.execute("UPDATE spending SET seconds = 0.0")
    for event in read_events(connection):
        apply_event(connection, event)


def read_events(connection: sqlite3.Connection, after: int = 0) -> list[StoredEvent]:
    """Return the events whose number is over `after`, in order."""
    rows = connection.execute(
        "SELECT seq, kind, payload, written_at FROM events WHERE seq > ? ORDER BY seq", (after,)
    )
    return [StoredEvent(seq, kind, json.loads(text), at) for seq, kind, text, at in rows]


def read_notes(connection: sqlite3.Connection, kind: str) -> list[Mapping[str, Any]]:
    """Return the payloads of one kind of event, oldest first."""
    rows = connection.execute("SELECT payload FROM events WHERE kind = ? ORDER BY seq", (kind,))
    return [json.loads(text) for (text,) in rows]


def read_spec(connection: sqlite3.Connection) -> RunSpec | None:
    """Return what the run was last asked to do; None before it began."""
    row = connection.execute(
        "SELECT payload FROM events WHERE kind IN ('begun', 'continued') ORDER BY seq DESC LIMIT 1"
    ).fetchone()
    return None if row is None else from_json(RunSpec, json.loads(row[0])["spec"])


def read_problem(connection: sqlite3.Connection) -> Problem | None:
    """Return the run's problem; None before it began."""
    found = read_notes(connection, "begun")
    return from_json(Problem, found[0]["problem"]) if found else None


def read_attempts(connection: sqlite3.Connection) -> list[Attempt]:
    """Return all attempts in order of id."""
    rows = connection.execute("SELECT record FROM attempts ORDER BY id")
    return [from_json(Attempt, json.loads(text)) for (text,) in rows]


def read_sha256(connection: sqlite3.Connection, candidate_id: str) -> str | None:
    """Return the hash of a candidate's blob; None when the candidate is unknown."""
    row = connection.execute(
        "SELECT sha256 FROM candidates WHERE id = ?", (candidate_id,)
    ).fetchone()
    return None if row is None else str(row[0])


def read_spent_s(connection: sqlite3.Connection) -> float:
    """Return the wall seconds that all sessions have spent."""
    return float(connection.execute("SELECT seconds FROM spending").fetchone()[0])


def is_open(connection: sqlite3.Connection, attempt_id: int) -> bool | None:
    """Whether an attempt awaits its verdict; None when it is unknown."""
    row = connection.execute("SELECT status FROM attempts WHERE id = ?", (attempt_id,)).fetchone()
    return None if row is None else row[0] is None


def _put_attempt(connection: sqlite3.Connection, attempt: Mapping[str, Any]) -> None:
    verdict = attempt["verdict"]
    connection.execute(
        "INSERT OR REPLACE INTO attempts (id, candidate_id, status, objective, record) "
        "VALUES (?, ?, ?, ?, ?)",
        (
            attempt["id"],
            attempt["candidate_id"],
            None if verdict is None else verdict["status"],
            attempt["objective"],
            dumps(attempt),
        ),
    )
