"""KernelBench problems by number: `kernelbench/LEVEL/ID` in a data set that the user has.

The data set is a JSON Lines file (fields `level`, `problem_id`, `name`, `code`), a folder that
holds `kernelbench.jsonl`, a checkout with `level1/19_ReLU.py` and so on, or `hub:OWNER/NAME`
(`hub.py`), the only one for which anything is downloaded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop.core.problem import Policy, Problem, ProblemKind
from hotloop.errors import ConfigError
from hotloop.problems.classify import read_text
from hotloop.problems.hub import is_hub, pinned, read_hub

POLICY = Policy(precision="as_shipped", library_calls="anchored", shape_scope="nominal")
"""Judged as the file runs in eager PyTorch, at the problem's own sizes: the field's practice."""

_NAME = re.compile(r"kernelbench/(\d+)/(\d+)")
_FOLDER = re.compile(r"level(\d+)")
_FILE = re.compile(r"(\d+)_(\w.*)\.py")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class KernelBenchEntry:
    """One problem of the data set."""

    level: int
    problem_id: int
    title: str
    """As the data set has it, for example `19_ReLU`."""
    code: str

    @property
    def name(self) -> str:
        """`kernelbench/LEVEL/ID`, the name that the command line takes."""
        return f"kernelbench/{self.level}/{self.problem_id}"

    def problem(self) -> Problem:
        """Return it as a Problem without settings."""
        kind = ProblemKind.KERNELBENCH
        return Problem(name=self.name, kind=kind, source=self.code, policy=POLICY)


def is_kernelbench_name(text: str) -> bool:
    """Whether `text` has the form `kernelbench/LEVEL/ID`."""
    return _NAME.fullmatch(text) is not None


def load_kernelbench(name: str, data: str | Path | None) -> KernelBenchEntry:
    """Return the problem called `kernelbench/LEVEL/ID` of the data set at `data`.

    Raises:
        ConfigError: no data set was given, it is damaged, or it has no such problem.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise ConfigError(f"expected a name like kernelbench/1/19, got {name!r}")
    level, problem_id = int(match[1]), int(match[2])
    entries = list_kernelbench(data)
    for entry in entries:
        if (entry.level, entry.problem_id) == (level, problem_id):
            return entry
    ids = [e.problem_id for e in entries if e.level == level]
    levels = sorted({e.level for e in entries})
    found = f"level {level} has {min(ids)} to {max(ids)}" if ids else f"it has levels {levels}"
    raise ConfigError(f"{name}: the data set {data} has no such problem; {found}")


def pin_data(data: str | Path | None) -> str | Path | None:
    """Return a data set of the hub with its revision as a commit, any other as it is.

    Raises:
        ConfigError: the hub's data set cannot be found.
    """
    return pinned(str(data)) if is_hub(data) else data


def list_kernelbench(data: str | Path | None) -> tuple[KernelBenchEntry, ...]:
    """Return all problems of the data set at `data`, by level and number.

    Raises:
        ConfigError: no data set was given, it is missing, damaged or empty.
    """
    if data is None:
        raise ConfigError(
            "KernelBench problems need --data PATH: a kernelbench.jsonl file, a folder with files "
            "like level1/19_ReLU.py, or hub:ScalingIntelligence/KernelBench"
        )
    if is_hub(data):
        return _some(sorted(_entry(row, f"--data {data}") for row in read_hub(str(data))), data)
    path = Path(data)
    if path.is_dir() and (path / "kernelbench.jsonl").is_file():
        path /= "kernelbench.jsonl"
    if not path.exists():
        raise ConfigError(f"--data {path}: there is no such file or folder")
    return _some(sorted(_read_folder(path) if path.is_dir() else _read_jsonl(path)), path)


def _some(entries: Sequence[KernelBenchEntry], data: str | Path) -> tuple[KernelBenchEntry, ...]:
    if not entries:
        raise ConfigError(
            f"--data {data}: expected KernelBench problems (a .jsonl file, or files like "
            "level1/19_ReLU.py), found none"
        )
    return tuple(entries)


def _read_jsonl(path: Path) -> Iterator[KernelBenchEntry]:
    for line_number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path} line {line_number}"
        try:
            row = json.loads(line)
        except json.JSONDecodeError as exc:
            raise ConfigError(f"{where}: expected one JSON object a line: {exc.msg}") from exc
        yield _entry(row, where)


def _entry(row: Any, where: str) -> KernelBenchEntry:
    return KernelBenchEntry(
        level=_field(row, "level", int, where),
        problem_id=_field(row, "problem_id", int, where),
        title=_field(row, "name", str, where),
        code=_field(row, "code", str, where),
    )


def _field(row: Any, key: str, kind: type, where: str) -> Any:
    value = row.get(key) if isinstance(row, dict) else None
    if not isinstance(value, kind):
        raise ConfigError(f"{where}: expected {kind.__name__} in field {key!r}, got {value!r}")
    return value


def _read_folder(root: Path) -> Iterator[KernelBenchEntry]:
    for folder in sorted(root.iterdir()):
        level = _FOLDER.fullmatch(folder.name)
        if level is None or not folder.is_dir():
            continue
        for file in sorted(folder.iterdir()):
            match = _FILE.fullmatch(file.name)
            if match is not None:
                yield KernelBenchEntry(
                    level=int(level[1]),
                    problem_id=int(match[1]),
                    title=file.stem,
                    code=read_text(file),
                )
