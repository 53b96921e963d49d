"""Which rows of earlier commands stand: those that this command would measure in the same way.

Rows of one commit can still differ in what they were measured with: another GPU, driver, torch or
triton, another budget, other sources under a commit that was only told. They are not mixed: a file
with such rows is refused before any work.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.attention_cases import CASES, Case
from benchmarks.attention_plan import budget_of
from benchmarks.results_file import Row, rows_of

SAME_ENVIRONMENT = ("gpu", "driver", "torch", "triton")
CUT = frozenset({"NO_KERNEL", "NO_FINAL"})
"""Statuses of a search whose budget may have been cut short by what else the machine did."""
TRIES = 3
"""So often is such a row measured; then it stands as a failure."""
PROBE_S = 120.0
PROBE = """
import json
from hotloop.worker.device import environment
print(json.dumps(environment("cuda", "")))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How this command measures."""

    commit: str
    digest: str
    """Of the sources."""
    budget: str | None
    """The user's, for all rows; None: each row's own."""
    environment: Callable[[], Mapping[str, Any]]
    """Of this machine; asked only where there are rows to compare it with."""


@cache
def this_environment() -> Mapping[str, Any]:
    """Return what a verdict of this machine says of it.

    Raises:
        ValueError: its torch cannot use the GPU.
    """
    done = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, timeout=PROBE_S, check=False
    )
    if done.returncode:
        said = (done.stderr.strip() or "nothing").splitlines()[-1]
        raise ValueError(f"expected torch with a GPU, to compare kept rows with; it said: {said}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def partial_path(path: Path) -> Path:
    """Return where rows are kept until `path` is complete."""
    return path.with_suffix(".partial.json")


def kept_rows(paths: Sequence[Path], wanted: Wanted) -> dict[str, Row]:
    """Return the finished rows of this commit by key; those of later files win.

    Raises:
        ValueError: a file holds rows of this commit that were measured in another way.
    """
    cases = {case.key: case for case in CASES}
    kept: dict[str, Row] = {}
    for path in paths:
        for row in rows_of(path, wanted.commit):
            case = cases.get(row["row"])
            if case is None or not row.get("environment"):
                continue
            other = next(_differences(row, case, wanted), None)
            if other is not None:
                raise ValueError(
                    f"{path}: {case.key} was measured with {other}; rows that were measured in "
                    "different ways are not mixed: leave the file out, or use another --out"
                )
            kept[case.key] = row
    return kept


def _differences(row: Row, case: Case, wanted: Wanted) -> Iterator[str]:
    told: list[tuple[str, object, object]] = [
        ("sources", row.get("source_digest"), wanted.digest),
        ("budget", row.get("budget"), budget_of(case, wanted.budget)),
    ]
    environment = wanted.environment()
    told += [(name, row["environment"].get(name), environment[name]) for name in SAME_ENVIRONMENT]
    for name, theirs, ours in told:
        if theirs != ours:
            yield f"{name} {theirs}, this command measures with {ours}"


def stands(row: Row | None) -> bool:
    """Whether a row is measured: there, no error, and not to be tried once more."""
    if row is None or row["error"] is not None:
        return False
    return row["status"] not in CUT or row.get("tries", 1) >= TRIES
