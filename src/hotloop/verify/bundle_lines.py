"""The format of bundles and verdict files: JSON lines, of which none may be missing.

A file whose name ends in `.gz` is compressed.

The first line names the kind of file, its version, and how many records of each sort follow, so
that a file that was cut off is never taken for a whole one.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from hotloop.core.packed import DAMAGED, is_packed, packed
from hotloop.core.record import dumps, from_json
from hotloop.errors import ConfigError

VERSION = 4
OLDEST = 1
"""Version 3 did not know `audits`; version 2 not `short`; version 1 not `asked`, `wants_counters`,
the tier of an error."""
BUNDLE = "hotloop_bundle"
VERDICTS = "hotloop_verdicts"
_KINDS = {
    BUNDLE: "a bundle (hotloop bundle writes one)",
    VERDICTS: "a verdict file (hotloop judge writes one)",
}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Line:
    """One record, and where it stands."""

    path: Path
    number: int
    record: Mapping[str, Any]

    def damaged(self, why: str) -> ConfigError:
        """Return the error that says so."""
        return ConfigError(
            f"{self.path}: line {self.number} is damaged: {why}; write the file again, with the "
            "same hotloop on both machines"
        )

    def parse(self, kind: type[T], name: str) -> T:
        """Return the record called `name`."""
        if name not in self.record:
            raise self.damaged(f"expected one of the file's records, got {sorted(self.record)}")
        try:
            return from_json(kind, self.record[name])
        except ValueError as exc:
            raise self.damaged(str(exc)) from None

    def check_known(self, problem_id: str, known: Collection[str]) -> None:
        """Refuse a problem that did not come before."""
        if problem_id not in known:
            raise self.damaged(f"its problem {problem_id} is not in the file before it")

    def check(self, name: str, expected: str | None) -> None:
        """Refuse an id that does not fit the content."""
        if self.record.get(name) != expected:
            told = self.record.get(name)
            raise self.damaged(f"{name} {told} does not fit its content, which is {expected}")


def write_lines(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Write a file whole: under another name, which is then changed.

    Raises:
        ConfigError: it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.tmp{os.getpid()}")
    try:
        try:
            text = "".join(f"{dumps(record)}\n" for record in records)
            with open(temporary, "wb") as file:
                file.write(packed(path, text))
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as exc:
        raise ConfigError(
            f"{path}: expected a file that can be written, got: {exc.strerror or exc}; name "
            "another one"
        ) from None


def read_lines(path: Path, kind: str) -> Iterator[Line]:
    """Yield the records after the first line; checks in the end that none is missing.

    Raises:
        ConfigError: the file is missing, of another kind or version, or damaged.
    """
    lines = _lines(path)
    head = next(lines, None)
    record = {} if head is None else head.record
    found = next((name for name in _KINDS if name in record), None)
    if head is None or found != kind:
        got = "an empty file" if head is None else _KINDS.get(found or "", "something else")
        raise ConfigError(f"{path}: expected {_KINDS[kind]}, got {got}")
    if record[kind] not in range(OLDEST, VERSION + 1):
        raise ConfigError(
            f"{path}: expected version {VERSION} of the format, got {record[kind]!r}; use the same "
            "hotloop on both machines"
        )
    missing = {name: count for name, count in record.items() if name != kind}
    if not all(type(count) is int for count in missing.values()):
        raise head.damaged("expected the number of each sort of record")
    for line in lines:
        name = next((n for n in missing if n in line.record), None)
        if name is None:
            raise line.damaged(f"expected one of {sorted(missing)}, got {sorted(line.record)}")
        missing[name] -= 1
        yield line
    if any(missing.values()):
        told = ", ".join(f"{count} of {name}" for name, count in missing.items() if count)
        raise ConfigError(
            f"{path}: the file was cut off or joined, it misses {told}; copy it again"
        )


def _lines(path: Path) -> Iterator[Line]:
    opened = gzip.open if is_packed(path) else open
    try:
        with opened(path, "rt", encoding="utf-8") as file:
            for number, text in enumerate(file, 1):
                yield _line(path, number, str(text))
    except DAMAGED as exc:
        raise ConfigError(f"{path}: the file is damaged: {exc}; copy it again") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: expected JSON lines in UTF-8, got other bytes") from None
    except OSError as exc:
        raise ConfigError(f"{path}: expected a file to read, got: {exc.strerror or exc}") from None


def _line(path: Path, number: int, text: str) -> Line:
    try:
        record = json.loads(text)
    except ValueError:
        record = None
    if isinstance(record, dict):
        return Line(path, number, record)
    if number == 1:  # not even a file of ours
        raise ConfigError(f"{path}: expected a file of hotloop bundle or hotloop judge")
    raise Line(path, number, {}).damaged("expected one JSON object")
