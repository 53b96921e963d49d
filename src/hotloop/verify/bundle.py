"""The two files that travel between a search and a judge that it cannot reach.

    bundle     problems and the candidates that await a verdict: `hotloop bundle` writes it
    verdicts   what `hotloop judge --bundle` found: problem infos, verdicts, errors

Both are JSON lines. The first line names the kind of file, its version, and how many records of
each sort follow, so that a file that was cut off is never taken for a whole one. They are written
under another name and renamed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from hotloop import errors
from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.record import dumps, from_json, to_json
from hotloop.core.verdict import Tier, Verdict
from hotloop.errors import ConfigError, ProblemError

VERSION = 3
OLDEST = 1
"""Version 2 did not know `short`; version 1 not `asked`, `wants_counters`, the tier of an error."""
_BUNDLE = "hotloop_bundle"
_VERDICTS = "hotloop_verdicts"
_KINDS = {
    _BUNDLE: "a bundle (hotloop bundle writes one)",
    _VERDICTS: "a verdict file (hotloop judge writes one)",
}

ANY_TIME_MS = 1e12
"""Longer than any kernel that is judged."""

T = TypeVar("T")
Key = tuple[str, str | None, Tier | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing to be judged: a candidate at a tier, or only the problem to be loaded."""

    problem_id: str
    candidate: Candidate | None = None
    """None: load the problem, nothing else."""
    tier: Tier | None = None
    """None exactly when there is no candidate."""
    incumbent_ms: float | None = None
    """Best fast time of the run so far: slower candidates need no hardware counters."""
    asked: int = 1
    """How often it was asked for, this time included: more than once where the other machine could
    not judge it."""
    wants_counters: bool = True
    """False where the run's prompts never show any."""
    short: bool = False  # whether the final tier is to be the short one

    def __post_init__(self) -> None:
        if (self.candidate is None) != (self.tier is None):
            raise ValueError("expected a candidate and a tier, or neither")

    @property
    def profile_below_ms(self) -> float:
        """Counters are read of a candidate that is faster than this, in milliseconds."""
        if not self.wants_counters:
            return 0.0
        return ANY_TIME_MS if self.incumbent_ms is None else self.incumbent_ms

    @property
    def key(self) -> Key:
        """What makes two items the same: problem, candidate, tier."""
        return self.problem_id, self.candidate.id if self.candidate else None, self.tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Problems by id, and what is to be judged of them."""

    problems: Mapping[str, Problem] = field(default_factory=dict)
    items: tuple[Item, ...] = ()

    def __post_init__(self) -> None:
        for problem_id, problem in self.problems.items():
            if problem.id != problem_id:
                raise ValueError(f"problem {problem.id} is filed as {problem_id}")
        missing = sorted({item.problem_id for item in self.items} - set(self.problems))
        if missing:
            raise ValueError(f"items of problems that are not in it: {', '.join(missing)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeError:
    """A problem that could not be loaded, or a candidate that the machine could not judge."""

    problem_id: str
    candidate_id: str | None
    """None: the problem's load failed."""
    error: str
    """Name of a class in `hotloop.errors`."""
    message: str
    tier: Tier | None = None
    """At which the candidate could not be judged; None where that is not known."""
    asked: int = 1
    """`Item.asked` of what could not be judged."""

    @property
    def problem_error(self) -> type[ProblemError] | None:
        """The class, where the problem itself is broken; None where the machine was at fault."""
        found = getattr(errors, self.error, None)
        is_one = isinstance(found, type) and issubclass(found, ProblemError)
        return found if is_one and self.candidate_id is None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """What was found about a bundle, or about a part of it."""

    infos: Mapping[str, ProblemInfo] = field(default_factory=dict)
    """By problem id."""
    verdicts: tuple[Verdict, ...] = ()
    errors: tuple[JudgeError, ...] = ()


def write_bundle(path: Path, bundle: Bundle) -> None:
    """Write a bundle whole.

    Raises:
        ConfigError: the file cannot be written.
    """
    records = [{"problem_id": p.id, "problem": to_json(p)} for p in bundle.problems.values()]
    records += [_item_record(item) for item in bundle.items]
    head = {_BUNDLE: VERSION, "problem": len(bundle.problems), "item": len(bundle.items)}
    _write(path, [head, *records])


def read_bundle(path: Path) -> Bundle:
    """Read a bundle; every id is checked against the content that it names.

    Raises:
        ConfigError: the file is missing, of another kind or version, or damaged.
    """
    problems: dict[str, Problem] = {}
    items: dict[Key, Item] = {}
    for line in _read(path, _BUNDLE):
        if "problem" in line.record:
            problem = line.parse(Problem, "problem")
            line.check("problem_id", problem.id)
            problems[problem.id] = problem
        else:
            item = line.parse(Item, "item")
            line.check("candidate_id", item.candidate.id if item.candidate else None)
            items[item.key] = item
            if item.problem_id not in problems:
                raise line.damaged(f"its problem {item.problem_id} is not in the file before it")
    return Bundle(problems=problems, items=tuple(items.values()))


def write_verdicts(path: Path, verdicts: Verdicts) -> None:
    """Write a verdict file whole.

    Raises:
        ConfigError: the file cannot be written.
    """
    head = {
        _VERDICTS: VERSION,
        "info": len(verdicts.infos),
        "verdict": len(verdicts.verdicts),
        "error": len(verdicts.errors),
    }
    records = [{"info": to_json(info)} for info in verdicts.infos.values()]
    records += [{"verdict": to_json(verdict)} for verdict in verdicts.verdicts]
    records += [{"error": to_json(error)} for error in verdicts.errors]
    _write(path, [head, *records])


def read_verdicts(path: Path) -> Verdicts:
    """Read a verdict file.

    Raises:
        ConfigError: the file is missing, of another kind or version, or damaged.
    """
    infos: dict[str, ProblemInfo] = {}
    verdicts: list[Verdict] = []
    failures: list[JudgeError] = []
    for line in _read(path, _VERDICTS):
        if "info" in line.record:
            info = line.parse(ProblemInfo, "info")
            infos[info.problem_id] = info
        elif "verdict" in line.record:
            verdicts.append(line.parse(Verdict, "verdict"))
        else:
            failures.append(line.parse(JudgeError, "error"))
    return Verdicts(infos=infos, verdicts=tuple(verdicts), errors=tuple(failures))


def _item_record(item: Item) -> dict[str, Any]:
    _, candidate_id, _ = item.key
    return {"candidate_id": candidate_id, "item": to_json(item)}


@dataclass(frozen=True, slots=True)
class _Line:
    path: Path
    number: int
    record: Mapping[str, Any]

    def damaged(self, why: str) -> ConfigError:
        return ConfigError(
            f"{self.path}: line {self.number} is damaged: {why}; write the file again, with the "
            "same hotloop on both machines"
        )

    def parse(self, kind: type[T], name: str) -> T:
        if name not in self.record:
            raise self.damaged(f"expected one of the file's records, got {sorted(self.record)}")
        try:
            return from_json(kind, self.record[name])
        except ValueError as exc:
            raise self.damaged(str(exc)) from None

    def check(self, name: str, expected: str | None) -> None:
        if self.record.get(name) != expected:
            told = self.record.get(name)
            raise self.damaged(f"{name} {told} does not fit its content, which is {expected}")


def _write(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    temporary = path.with_name(f".{path.name}.tmp{os.getpid()}")
    try:
        try:
            with open(temporary, "w", encoding="utf-8") as file:
                file.writelines(f"{dumps(record)}\n" for record in records)
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


def _read(path: Path, kind: str) -> Iterator[_Line]:
    """Yield the records after the first line; checks in the end that none is missing."""
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


def _lines(path: Path) -> Iterator[_Line]:
    try:
        with open(path, encoding="utf-8") as file:
            for number, text in enumerate(file, 1):
                yield _line(path, number, text)
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: expected JSON lines in UTF-8, got other bytes") from None
    except OSError as exc:
        raise ConfigError(f"{path}: expected a file to read, got: {exc.strerror or exc}") from None


def _line(path: Path, number: int, text: str) -> _Line:
    try:
        record = json.loads(text)
    except ValueError:
        record = None
    if isinstance(record, dict):
        return _Line(path, number, record)
    if number == 1:  # not even a file of ours
        raise ConfigError(f"{path}: expected a file of hotloop bundle or hotloop judge")
    raise _Line(path, number, {}).damaged("expected one JSON object")
