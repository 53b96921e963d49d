"""Snapshots of a run's journal: whole copies beside it, for the day on which it is damaged.

    snapshots/journal-000000123.sqlite      as it was after event 123; the newest three are kept

`VACUUM INTO` copies over a connection of its own that only reads, so in WAL mode the writer goes on
meanwhile. A copy is checked and synced before it gets its name: what has the name is good.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from hotloop.core import kill_points
from hotloop.store.blobs import sync

JOURNAL_FILE = "journal.sqlite"
SNAPSHOT_FOLDER = "snapshots"
EVERY_S = 600.0
KEPT = 3

_PATTERN = "journal-*.sqlite"


class Snapshots:
    """Takes one every so often, in a thread, from `start` to `stop`."""

    def __init__(
        self, journal: Path, *, every_s: float = EVERY_S, warn: Callable[[str], None]
    ) -> None:
        """Do nothing yet.

        Args:
            journal: the file to copy.
            every_s: real seconds between two snapshots.
            warn: called with one line, once, when snapshots begin to fail.
        """
        self._journal = journal
        self._every_s = every_s
        self._warn = warn
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to count the time. Idempotent."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="snapshots", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Wait for a snapshot under way and take no other. Idempotent."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        is_failing = False
        while not self._stopped.wait(self._every_s):
            try:
                take_snapshot(self._journal)
            except (sqlite3.Error, OSError) as exc:
                if not is_failing:
                    self._warn(f"no snapshot of the journal: {exc}; the run goes on")
                is_failing = True
            else:
                is_failing = False


def take_snapshot(journal: Path, *, kept: int = KEPT) -> Path | None:
    """Copy the journal and drop the oldest copies; None when nothing happened since the last one.

    Raises:
        sqlite3.Error: it cannot be copied, or the copy is not whole.
        OSError: the file system refused.
    """
    kill_points.reach("before-snapshot")
    folder = journal.parent / SNAPSHOT_FOLDER
    folder.mkdir(exist_ok=True)
    temporary = folder / f"journal.tmp{os.getpid()}"
    try:
        _copy(journal, temporary)
        path = folder / f"journal-{_last_event(temporary):09d}.sqlite"
        if path.exists():
            return None
        kill_points.reach("snapshot-written")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync(folder)
    kill_points.reach("after-snapshot")
    for old in sorted(folder.glob(_PATTERN))[:-kept]:
        old.unlink()
    return path


def newest_good(folder: Path) -> Path | None:
    """Return the newest snapshot of a run folder that is whole; None when there is none."""
    for path in sorted((folder / SNAPSHOT_FOLDER).glob(_PATTERN), reverse=True):
        try:
            _last_event(path)
        except sqlite3.Error:
            continue
        return path
    return None


def _copy(journal: Path, to: Path) -> None:
    to.unlink(missing_ok=True)
    with closing(_open(journal)) as source:
        source.execute("VACUUM INTO ?", (str(to),))
    sync(to)  # VACUUM INTO leaves that to its caller


def _last_event(path: Path) -> int:
    """Return the number of a whole copy's last event.

    Raises:
        sqlite3.Error: it is damaged or no journal.
    """
    with closing(_open(path)) as connection:
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise sqlite3.DatabaseError(f"{path} is not whole: {found}")
        (seq,) = connection.execute("SELECT COALESCE(MAX(seq), 0) FROM events").fetchone()
    return int(seq)


def _open(path: Path) -> sqlite3.Connection:
    address = f"file:{quote(str(path.absolute()))}?mode=ro"
    return sqlite3.connect(address, uri=True, isolation_level=None)
