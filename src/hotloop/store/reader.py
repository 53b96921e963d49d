"""RunReader: a read-only view of a run folder, also while its writer runs.

For `show`, `report` and the dashboard. It takes no lock, writes nothing, and each call sees all
that was acknowledged before it. Not shared between threads: open one each.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hotloop.core.attempt import Attempt, RunSpec
from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem
from hotloop.errors import ForeignRun, StoreError
from hotloop.store import excerpts, rows
from hotloop.store.blobs import read_candidate
from hotloop.store.failure import store_errors
from hotloop.store.migrations import check_version
from hotloop.store.opening import BUSY_TIMEOUT_S, check_not_emptied
from hotloop.store.sqlite import JOURNAL_FILE


class RunReader:
    """Reads one run folder; a context manager."""

    def __init__(self, folder: Path) -> None:
        """Open the folder's journal.

        Raises:
            ForeignRun: there is no run in the folder, or a newer hotloop wrote it.
            StoreError: it cannot be read, or was emptied.
        """
        self.folder = folder
        self._attempts: tuple[int, tuple[Attempt, ...]] | None = None
        path = folder / JOURNAL_FILE
        if not path.is_file():
            raise ForeignRun(f"{folder} holds no hotloop run; give the --out of an earlier one")
        with store_errors(folder):
            self._connection = _open_read_only(path)
        try:
            self._check()
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> RunReader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the journal. Idempotent."""
        self._connection.close()

    def spec(self) -> RunSpec:
        """Return what the run was last asked to do."""
        with store_errors(self.folder):
            spec = rows.read_spec(self._connection)
        assert spec is not None, "checked when the folder was opened"
        return spec

    def problem(self) -> Problem:
        """Return the run's problem."""
        with store_errors(self.folder):
            problem = rows.read_problem(self._connection)
        assert problem is not None, "checked when the folder was opened"
        return problem

    def attempts(self) -> Sequence[Attempt]:
        """Return all attempts in order of id; kept until the journal grows."""
        with store_errors(self.folder):
            last = excerpts.read_last_event(self._connection).seq
            if self._attempts is None or self._attempts[0] != last:
                self._attempts = last, tuple(rows.read_attempts(self._connection))
            return self._attempts[1]

    def notes(self, kind: str) -> Sequence[Mapping[str, Any]]:
        """Return the payloads of all notes of one kind, oldest first."""
        with store_errors(self.folder):
            return rows.read_notes(self._connection, kind)

    def events(self, after: int = 0) -> Sequence[rows.StoredEvent]:
        """Return the journal's events whose number is over `after`."""
        with store_errors(self.folder):
            return rows.read_events(self._connection, after)

    def last_event(self) -> excerpts.LastEvent:
        """Return the newest event; a run that has begun has one."""
        with store_errors(self.folder):
            return excerpts.read_last_event(self._connection)

    def first_written_at(self) -> float:
        """Return when the first event was written, seconds since the epoch."""
        with store_errors(self.folder):
            return excerpts.read_first_written_at(self._connection)

    def events_of(
        self, kinds: Sequence[str], *, after: int = 0, without: Sequence[str] = ()
    ) -> Sequence[rows.StoredEvent]:
        """Return the events of these kinds whose number is over `after`, in order.

        Args:
            kinds: kinds of events.
            after: number of the last event that is known.
            without: JSON paths (`$.a.b`) that are left out of each payload.
        """
        with store_errors(self.folder):
            return excerpts.read_events_of(self._connection, kinds, after, without)

    def attempt_record(self, attempt_id: int) -> dict[str, Any] | None:
        """Return one attempt as JSON values; None where there is none."""
        with store_errors(self.folder):
            return excerpts.read_attempt_record(self._connection, attempt_id)

    def call_notes(self, kinds: Sequence[str], attempt_id: int) -> Sequence[rows.StoredEvent]:
        """Return the notes of some kinds on one attempt's model calls, in order."""
        with store_errors(self.folder):
            return excerpts.read_call_notes(self._connection, kinds, attempt_id)

    def spent_s(self) -> float:
        """Return the wall clock that all sessions of this run have spent."""
        with store_errors(self.folder):
            return rows.read_spent_s(self._connection)

    def candidate(self, candidate_id: str) -> Candidate:
        """Return a stored candidate.

        Raises:
            StoreError: it is unknown, missing or damaged.
        """
        with store_errors(self.folder):
            sha256 = rows.read_sha256(self._connection, candidate_id)
            if sha256 is None:
                raise StoreError(f"{self.folder}: no candidate {candidate_id} in this run")
            return read_candidate(self.folder, candidate_id, sha256)

    def _check(self) -> None:
        with store_errors(self.folder):
            version = check_version(self._connection, self.folder)
            check_not_emptied(self.folder, version)
            # What is read here is in every schema so far: an older run is read as it is.
            begun = version > 0 and rows.read_spec(self._connection) is not None
        if not begun:
            raise ForeignRun(f"{self.folder} holds a run that has not begun yet; start it first")


def _open_read_only(path: Path) -> sqlite3.Connection:
    address = f"file:{quote(str(path.absolute()))}?mode=ro"
    connection = sqlite3.connect(address, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        connection.close()
        if path.with_name(path.name + "-wal").exists():
            raise
        # WAL without its side files in a folder that cannot be written: nobody can be writing.
        connection = sqlite3.connect(address + "&immutable=1", uri=True, isolation_level=None)
    except sqlite3.Error:
        connection.close()
        raise
    return connection
