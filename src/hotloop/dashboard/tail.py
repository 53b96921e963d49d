"""A journal while it grows: whether anything is new, and what.

Looking costs two `stat` calls; the journal is opened only where they differ.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hotloop.llm.call_notes import FAILED, INTENT, RESPONSE
from hotloop.store.failure import store_errors
from hotloop.store.reader import RunReader
from hotloop.store.rows import StoredEvent
from hotloop.store.sqlite import JOURNAL_FILE

Signature = tuple[tuple[int, int, int] | None, ...]
"""Inode, size and time of the journal and of its WAL; None where a file is missing."""


class LastEvent(NamedTuple):
    """The newest line of a journal."""

    seq: int
    written_at: float
    """Seconds since the epoch."""


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


class TailReader(RunReader):
    """A reader that can ask for what is new, and for one attempt's part alone."""

    def __enter__(self) -> TailReader:
        return self

    def last_event(self) -> LastEvent:
        """Return the newest event; a run that has begun has one."""
        with store_errors(self.folder):
            row = self._connection.execute(
                "SELECT seq, written_at FROM events ORDER BY seq DESC LIMIT 1"
            ).fetchone()
        return LastEvent(int(row[0]), float(row[1]))

    def first_written_at(self) -> float:
        """Return when the first event was written, seconds since the epoch."""
        with store_errors(self.folder):
            row = self._connection.execute(
                "SELECT written_at FROM events ORDER BY seq LIMIT 1"
            ).fetchone()
        return float(row[0])

    def new_events(self, kinds: Sequence[str], after: int) -> list[StoredEvent]:
        """Return the events of these kinds whose number is over `after`, in order."""
        marks = ", ".join("?" * len(kinds))
        with store_errors(self.folder):
            rows = self._connection.execute(
                f"SELECT seq, kind, payload, written_at FROM events WHERE kind IN ({marks}) "
                "AND seq > ? ORDER BY seq",
                (*kinds, after),
            ).fetchall()
        return [StoredEvent(seq, kind, json.loads(text), at) for seq, kind, text, at in rows]

    def attempt_record(self, attempt_id: int) -> dict[str, Any] | None:
        """Return one attempt as JSON values; None where there is none."""
        with store_errors(self.folder):
            row = self._connection.execute(
                "SELECT record FROM attempts WHERE id = ?", (attempt_id,)
            ).fetchone()
        return None if row is None else dict(json.loads(row[0]))

    def call_notes(self, attempt_id: int) -> list[StoredEvent]:
        """Return the notes on one attempt's model calls, in order."""
        with store_errors(self.folder):
            rows = self._connection.execute(
                "SELECT seq, kind, payload, written_at FROM events WHERE kind IN (?, ?, ?) "
                "AND json_extract(payload, '$.key.attempt') = ? ORDER BY seq",
                (INTENT, RESPONSE, FAILED, attempt_id),
            ).fetchall()
        return [StoredEvent(seq, kind, json.loads(text), at) for seq, kind, text, at in rows]
