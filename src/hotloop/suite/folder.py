"""A suite's folder: what was asked, and which problems could not be run.

    suite.json       problems, options, and the reason of each problem that has no run to tell it
    runs/LEVEL-ID/   one ordinary run folder for each problem
    lock             held while the suite runs

`suite.json` is replaced as a whole and synced, so that `kill -9` leaves the former or the new one.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hotloop.core.record import from_json, to_json
from hotloop.errors import ForeignRun
from hotloop.store.blobs import sync
from hotloop.store.failure import is_there, store_errors
from hotloop.store.lock import LOCK_FILE, FolderLock
from hotloop.store.sqlite import JOURNAL_FILE
from hotloop.verify.seat_use import SeatUse

SUITE_FILE = "suite.json"
RUNS_FOLDER = "runs"
SCHEMA_VERSION = 1
PRECISION, DEFAULT_PRECISION = "precision", "as_shipped"
"""The option that names a suite's precision policy, and what holds where it is not there."""
_TEMPORARY = SUITE_FILE + ".tmp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One problem of a suite."""

    name: str
    """`kernelbench/1/19`."""
    level: int
    number: int
    title: str
    """As the data set has it: `19_ReLU`."""
    problem_id: str
    """Hash of its content with the settings."""

    @property
    def folder(self) -> str:
        """The run's folder, relative to the suite's."""
        return f"{RUNS_FOLDER}/{self.level}-{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Why a problem could not be run, where its run's journal does not say so."""

    kind: str
    """The error's class."""
    message: str
    skipped: bool
    """Whether the problem or what was asked of it is at fault; else the machine or the model."""
    again: bool = True
    """Whether the same command tries it again by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """Wall clock that a problem got beyond its share, from what others left over."""

    wall_s: float
    slices: int
    """In so many grants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """The kernel of another suite that a problem began from."""

    candidate_id: str
    author: str
    """Who wrote it: the model's spec, or `builtin`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRecord:
    """What `suite.json` holds."""

    schema_version: int = SCHEMA_VERSION
    suite: str
    """`kernelbench`."""
    problems: tuple[Member, ...]
    options: Mapping[str, Any]
    """What makes it another suite when it changes: model, strategy, device, seed, ..."""
    limits: Mapping[str, Any]
    """Each run's budget as it was last asked for; may change between two calls."""
    troubles: Mapping[str, Trouble] = field(default_factory=dict)
    """By the problem's name."""
    grants: Mapping[str, Granted] = field(default_factory=dict)
    """By the problem's name; written before the time is spent."""
    use: Mapping[str, SeatUse] = field(default_factory=dict)
    """What each GPU did, over all sessions, by its name; `cpu` where there is none."""
    starts: Mapping[str, Begun] = field(default_factory=dict)
    """By the problem's name, where it began from another suite: fixed when the suite is begun,
    whatever that suite finds later."""
    start_only: bool = False
    """Whether starting kernels were verified and nothing else was tried so far."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """What else was given last (`suite/command.py`); empty in suites of an older hotloop."""

    @property
    def precision(self) -> str:
        """The precision policy of all its problems."""
        return str(self.options.get(PRECISION, DEFAULT_PRECISION))


class Suite:
    """The one writer of a suite's folder; a context manager. Safe to use from several threads."""

    def __init__(self, folder: Path, asked: SuiteRecord) -> None:
        """Hold the folder, new or of the same suite, and write down what is asked for.

        Raises:
            ForeignRun: the folder holds something else, or another suite.
            RunHeld: another process runs it.
            StoreError: it cannot be read or written.
        """
        self.folder = folder
        check_suite(folder, asked)
        with store_errors(folder):
            (folder / RUNS_FOLDER).mkdir(parents=True, exist_ok=True)
        self._held = FolderLock(folder)
        self._mutex = threading.Lock()
        try:
            stored = check_suite(folder, asked)  # as it is now that nobody else writes it
            self.record = asked if stored is None else _going_on(stored, asked)
            self._earlier_use = self.record.use
            if self.record != stored:
                self._write(self.record)
        except BaseException:
            self._held.release()
            raise

    def __enter__(self) -> Suite:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the folder. Idempotent."""
        self._held.release()

    def run_folder(self, member: Member) -> Path:
        """Return where the run of a problem lies."""
        return self.folder / member.folder

    def note(self, name: str, trouble: Trouble | None) -> None:
        """Write down why a problem could not be run; None: it can be.

        Raises:
            StoreError: the file cannot be written.
        """
        with self._mutex:
            if self.record.troubles.get(name) == trouble:
                return
            troubles = {n: t for n, t in self.record.troubles.items() if n != name}
            if trouble is not None:
                troubles[name] = trouble
            self._change(troubles=troubles)

    def grant(self, name: str, granted: Granted) -> None:
        """Write down what a problem may spend beyond its share, before it does.

        Raises:
            StoreError: the file cannot be written.
        """
        with self._mutex:
            self._change(grants={**self.record.grants, name: granted})

    def note_use(self, use: Mapping[str, SeatUse]) -> None:
        """Write down what each GPU did so far in this session.

        Raises:
            StoreError: the file cannot be written.
        """
        with self._mutex:
            earlier = self._earlier_use
            self._change(
                use={**earlier, **{n: earlier.get(n, SeatUse()) + u for n, u in use.items()}}
            )

    def _change(self, **fields: Any) -> None:
        fresh = replace(self.record, **fields)
        self._write(fresh)
        self.record = fresh

    def _write(self, record: SuiteRecord) -> None:
        text = json.dumps(to_json(record), indent=1, sort_keys=True) + "\n"
        with store_errors(self.folder):
            temporary = self.folder / _TEMPORARY
            with temporary.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.folder / SUITE_FILE)
            sync(self.folder)


def read_suite(folder: Path) -> SuiteRecord:
    """Return what was asked of the suite in a folder.

    Raises:
        ForeignRun: there is none, a newer hotloop wrote it, or it is damaged.
        StoreError: it cannot be read.
    """
    path = folder / SUITE_FILE
    with store_errors(folder):
        if not path.is_file():
            raise ForeignRun(f"{folder} holds no suite; give the --out of `hotloop bench`")
        data = path.read_bytes()
    try:
        record = json.loads(data)
        version = record["schema_version"]
        if isinstance(version, int) and version > SCHEMA_VERSION:
            raise ForeignRun(
                f"{path}: a newer hotloop wrote it (version {version}, this one knows "
                f"{SCHEMA_VERSION}); update hotloop"
            )
        return from_json(SuiteRecord, record)
    except (ValueError, KeyError, TypeError) as exc:
        raise ForeignRun(
            f"{path} is damaged ({' '.join(str(exc).split())[:200]}); restore it from a copy, or "
            "use another --out"
        ) from exc


def check_suite(folder: Path, asked: SuiteRecord) -> SuiteRecord | None:
    """Check, without writing, that a suite may live in the folder; return what is stored there.

    Raises:
        ForeignRun: it is a file, a single run, another suite, or holds other things.
        StoreError: it cannot be read.
    """
    with store_errors(folder):
        if not is_there(folder):
            return None
        if not folder.is_dir():
            raise ForeignRun(f"{folder} is a file; --out wants a new or an existing suite folder")
        names = {entry.name for entry in folder.iterdir()}
    if JOURNAL_FILE in names:
        raise ForeignRun(
            f"{folder} is a single run, not a suite; use another --out, or go on with it by "
            "hotloop optimize"
        )
    if SUITE_FILE in names:
        stored = read_suite(folder)
        _compare(stored, asked, folder)
        return stored
    if names - {LOCK_FILE, _TEMPORARY, RUNS_FOLDER} or _has_entries(folder / RUNS_FOLDER):
        raise ForeignRun(
            f"{folder} holds files but no suite; use a new, an empty or a suite folder"
        )
    return None


def _has_entries(folder: Path) -> bool:
    # A suite that was killed before its first file leaves an empty folder of runs.
    with store_errors(folder):
        return folder.is_dir() and any(folder.iterdir())


def _going_on(stored: SuiteRecord, asked: SuiteRecord) -> SuiteRecord:
    """Return a suite's record with what may change between two calls."""
    kept = ("limits", "start_only", "given")
    return replace(stored, **{name: getattr(asked, name) for name in kept})


def _compare(stored: SuiteRecord, asked: SuiteRecord, folder: Path) -> None:
    cure = "repeat the former or use another --out"
    if stored.suite != asked.suite:
        raise ForeignRun(f"{folder} holds the suite {stored.suite!r}, not {asked.suite!r}; {cure}")
    for name in sorted({*stored.options, *asked.options}):
        absent = DEFAULT_PRECISION if name == PRECISION else None
        was, now = stored.options.get(name, absent), asked.options.get(name, absent)
        if to_json(was) != to_json(now):
            raise ForeignRun(f"{folder} was started with {name} {was!r}, now it is {now!r}; {cure}")
    if stored.starts != asked.starts:
        raise ForeignRun(f"{folder} began from other kernels than those of --start; {cure}")
    if stored.problems == asked.problems:
        return
    had, has = ({m.name: m for m in r.problems} for r in (stored, asked))
    other = next((n for n in has if n in had and had[n] != has[n]), None)
    if other is not None:
        raise ForeignRun(f"{folder}: {other} is another problem now than when it began; {cure}")
    raise ForeignRun(
        f"{folder} was started with {len(had)} problem(s), now there are {len(has)} (first "
        f"difference: {min({*had} ^ {*has})}); {cure}"
    )
