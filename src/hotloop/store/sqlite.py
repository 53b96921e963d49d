"""SqliteStore: a run's journal in a folder.

    journal.sqlite   append-only events and the tables derived from them, in WAL mode
    blobs/           candidates by content        lock   held while the writer lives
    snapshots/       copies of the journal

Every call returns after its change is on disk (`synchronous=FULL`), so a `kill -9` loses nothing
that was acknowledged. One process writes, from any of its threads; others read with
`hotloop.store.reader`. WAL needs shared memory between readers and writer: on file systems that
are not local the journal is kept in SQLite's older rollback mode, which does without.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hotloop.core import kill_points
from hotloop.core.attempt import Attempt, RunSpec
from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem
from hotloop.core.record import to_json
from hotloop.errors import ForeignRun, StoreError
from hotloop.store import rows, snapshots
from hotloop.store.blobs import read_candidate, write_candidate
from hotloop.store.failure import is_there, store_errors
from hotloop.store.file_system import NOT_LOCAL, file_system_magic
from hotloop.store.identity import check_note_kind, check_same_run
from hotloop.store.lease_book import SqliteLeases
from hotloop.store.lock import LOCK_FILE, FolderLock
from hotloop.store.opening import open_journal, remove_partial_files
from hotloop.store.snapshots import EVERY_S, Snapshots

JOURNAL_FILE = snapshots.JOURNAL_FILE


class SqliteStore:
    """The one writer of a run folder; a context manager."""

    def __init__(
        self,
        folder: Path,
        *,
        probe: Callable[[Path], int | None] = file_system_magic,
        snapshot_every_s: float = EVERY_S,
    ) -> None:
        """Open or create the folder and hold it.

        Args:
            folder: where the run lives.
            probe: returns `statfs.f_type` of a folder.
            snapshot_every_s: real seconds between two snapshots of a run that has begun.

        Raises:
            ForeignRun: the folder holds something else, or a newer hotloop wrote it.
            RunHeld: another process holds it.
            StoreError: it cannot be read or written.
        """
        self.folder = folder
        self._mutex = threading.RLock()
        self.leases = SqliteLeases(self._transaction, self._reading)
        """Verifications that are or were under way: a `core.lease.LeaseBook`."""
        check_folder(folder)
        with store_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            kind = NOT_LOCAL.get(probe(folder) or 0)
        self.warning = None if kind is None else _warn_of(kind, folder)
        """What the user should know of where the folder lies; None when all is well."""
        self._held = FolderLock(folder)
        try:
            with store_errors(folder):
                self._connection = open_journal(folder / JOURNAL_FILE, is_local=kind is None)
                remove_partial_files(folder)
        except BaseException as exc:
            if isinstance(exc, StoreError):
                self._held.leave_words(str(exc))
            self._held.release()
            raise
        self._snapshots = Snapshots(
            folder / JOURNAL_FILE, every_s=snapshot_every_s, warn=self._warn
        )

    def __enter__(self) -> SqliteStore:
        return self

    def __exit__(self, *exc: object) -> None:
        if isinstance(exc[1], StoreError):
            self._held.leave_words(str(exc[1]))
        self.close()

    def close(self) -> None:
        """Close the journal and free the folder. Idempotent."""
        self._snapshots.stop()
        with self._mutex:
            with store_errors(self.folder):
                self._connection.close()
            self._held.release()

    def begin(self, spec: RunSpec, problem: Problem) -> None:
        """Create the run, or check that it is this one and go on with it.

        Raises:
            ForeignRun: the folder holds another run; names the difference.
        """
        kill_points.reach("before-run")
        with self._transaction():
            stored = rows.read_spec(self._connection)
            if stored is None:
                self._append("begun", {"spec": to_json(spec), "problem": to_json(problem)})
            else:
                check_same_run(stored, spec, str(self.folder))
                if stored != spec:
                    self._append("continued", {"spec": to_json(spec)})
        kill_points.reach("after-run")
        self._snapshots.start()

    def propose(self, attempt: Attempt, candidate: Candidate | None) -> None:
        """Record an attempt that awaits its verdict; again with its candidate when that comes.

        Raises:
            ValueError: the candidate is not the attempt's, or the attempt has its verdict.
        """
        given = None if candidate is None else candidate.id
        if given != attempt.candidate_id or attempt.verdict is not None:
            raise ValueError(
                f"attempt {attempt.id}: expected candidate {attempt.candidate_id} and no verdict, "
                f"got candidate {given} and {attempt.verdict and attempt.verdict.status}"
            )
        with self._mutex, store_errors(self.folder):
            sha256 = None if candidate is None else write_candidate(self.folder, candidate)
        with self._transaction():
            if rows.is_open(self._connection, attempt.id) is False:
                raise ValueError(f"attempt {attempt.id} has its verdict already")
            self._append("proposed", {"attempt": to_json(attempt), "sha256": sha256})

    def conclude(self, attempt: Attempt) -> None:
        """Record an attempt's verdict.

        Raises:
            ValueError: there is no verdict, or the attempt is not open.
        """
        if attempt.verdict is None:
            raise ValueError(f"attempt {attempt.id} has no verdict to conclude with")
        with self._transaction():
            if not rows.is_open(self._connection, attempt.id):
                raise ValueError(f"attempt {attempt.id} is not open")
            self._append("concluded", {"attempt": to_json(attempt)})

    def note(self, kind: str, payload: Mapping[str, Any]) -> None:
        """Append one event that is no attempt.

        Raises:
            ValueError: the kind is one of the journal's own.
        """
        check_note_kind(kind)
        with self._transaction():
            self._append(kind, payload)

    def notes(self, kind: str) -> Sequence[Mapping[str, Any]]:
        """Return the payloads of all notes of one kind, oldest first."""
        with self._reading() as connection:
            return rows.read_notes(connection, kind)

    def attempts(self) -> Sequence[Attempt]:
        """Return all attempts in order of id."""
        with self._reading() as connection:
            return rows.read_attempts(connection)

    def candidate(self, candidate_id: str) -> Candidate:
        """Return a stored candidate.

        Raises:
            StoreError: it is missing or damaged.
        """
        with self._reading() as connection:
            sha256 = rows.read_sha256(connection, candidate_id)
            if sha256 is None:
                raise StoreError(f"{self.folder}: no candidate {candidate_id} in this run")
            return read_candidate(self.folder, candidate_id, sha256)

    def spend(self, seconds: float) -> None:
        """Add to the run's spent wall clock.

        Raises:
            ValueError: the seconds are negative.
        """
        if seconds < 0:
            raise ValueError(f"expected seconds from 0, got {seconds!r}")
        with self._transaction():
            self._append("spent", {"seconds": seconds})

    def spent_s(self) -> float:
        """Return the wall clock that all sessions of this run have spent."""
        with self._reading() as connection:
            return rows.read_spent_s(connection)

    def rebuild(self) -> None:
        """Derive every table afresh from the events."""
        with self._transaction():
            rows.rebuild(self._connection)

    def _warn(self, message: str) -> None:
        with suppress(StoreError):  # the writer finds out by itself
            self.note("warning", {"message": message})

    def _append(self, kind: str, payload: Mapping[str, Any]) -> None:
        rows.append_event(self._connection, kind, payload, time.time())

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._mutex, store_errors(self.folder):
            yield self._connection

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._mutex, store_errors(self.folder):
            kill_points.reach("before-rows")
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                kill_points.reach("inside-rows")
                self._connection.execute("COMMIT")
                kill_points.reach("after-rows")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


def check_folder(folder: Path) -> None:
    """Check, without writing, that a run may live in the folder; it need not exist.

    Raises:
        ForeignRun: it is a file, or holds other things than a run.
        StoreError: it cannot be read.
    """
    with store_errors(folder):
        if not is_there(folder):
            return
        if not folder.is_dir():
            raise ForeignRun(f"{folder} is a file; --out wants a new or an existing run folder")
        names = {entry.name for entry in folder.iterdir()}
    if JOURNAL_FILE not in names and names - {LOCK_FILE}:
        raise ForeignRun(
            f"{folder} holds files but no hotloop run; use a new, an empty or a run folder"
        )


def _warn_of(kind: str, folder: Path) -> str:
    return (
        f"{folder} lies on {kind}: the journal is slower there and its lock may not reach other "
        "hosts; an --out on a local disk is safer"
    )
