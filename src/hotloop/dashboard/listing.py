"""Which runs and suites lie below the served folder, each with an id that is safe in a URL.

Pages find a folder by its id in a fresh listing and by nothing else: no part of a URL ever becomes
a path. Symbolic links are not followed, so nothing outside the folder is listed.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hotloop.store.sqlite import JOURNAL_FILE
from hotloop.suite.folder import RUNS_FOLDER, SUITE_FILE

DEEPEST = 6
"""Levels below the served folder that are looked into."""
MOST = 5_000
"""Folders that are looked into; what lies beyond is not listed."""
_SKIPPED = frozenset({"blobs", "snapshots", "best", "node_modules", "__pycache__"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The folder of a run or of a suite."""

    id: str
    """Letters, digits and hyphens; the same for the same path."""
    folder: Path
    name: str
    """Its path below the served folder."""
    is_suite: bool
    suite: str | None = None
    """The id of the suite that a run belongs to."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What was found, in order of path."""

    places: tuple[Place, ...]

    def find(self, place_id: str, *, is_suite: bool) -> Place | None:
        """Return the place with this id; None where there is none of that kind."""
        found = (p for p in self.places if p.id == place_id and p.is_suite is is_suite)
        return next(found, None)

    @property
    def runs(self) -> tuple[Place, ...]:
        """Runs that belong to no suite."""
        return tuple(p for p in self.places if not p.is_suite and p.suite is None)

    @property
    def suites(self) -> tuple[Place, ...]:
        """The suites."""
        return tuple(p for p in self.places if p.is_suite)

    def members(self, suite: Place) -> dict[str, Place]:
        """Return the runs of a suite by the name of their folder."""
        return {p.folder.name: p for p in self.places if p.suite == suite.id}


def scan(root: Path) -> Listing:
    """Return the runs and suites below `root`, itself included."""
    places: list[Place] = []
    suites: dict[Path, str] = {}
    for folder, names in _folders(root):
        is_suite = SUITE_FILE in names
        if not is_suite and JOURNAL_FILE not in names:
            continue
        name = str(folder.relative_to(root)) if folder != root else folder.name
        place_id = _id(name)
        owner = suites.get(folder.parent.parent) if folder.parent.name == RUNS_FOLDER else None
        if is_suite:
            suites[folder] = place_id
        places.append(Place(id=place_id, folder=folder, name=name, is_suite=is_suite, suite=owner))
    return Listing(tuple(sorted(places, key=lambda p: p.name)))


def _folders(root: Path) -> Iterator[tuple[Path, set[str]]]:
    """Yield folders, parents first, with the names of the plain files in each."""
    waiting = [(root, 0)]
    seen = 0
    while waiting and seen < MOST:
        folder, depth = waiting.pop()
        seen += 1
        names: set[str] = set()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_file(follow_symlinks=False):
                        names.add(entry.name)
                    elif depth < DEEPEST and _is_worth_it(entry):
                        waiting.append((folder / entry.name, depth + 1))
        except OSError:  # deleted meanwhile, or not ours to read
            continue
        yield folder, names


def _is_worth_it(entry: os.DirEntry[str]) -> bool:
    if entry.name in _SKIPPED or entry.name.startswith("."):
        return False
    return stat.S_ISDIR(entry.stat(follow_symlinks=False).st_mode)


def _id(name: str) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40].strip("-") or "run"
    return f"{words}-{hashlib.sha256(name.encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"
