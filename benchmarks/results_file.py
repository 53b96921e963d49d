"""The form of a results file: where every figure that the project claims comes from."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
MEASURED = ("src", "examples", "benchmarks", ":!benchmarks/results")
"""What has to be committed for a commit to name what was measured."""

Row = dict[str, Any]


@cache
def commit() -> str:
    """Return the commit that is measured; with changes, `COMMIT+DIGEST` of the sources.

    It is found once a process: what is measured is what was there at the start. A copy
    without git is told its commit by `HOTLOOP_COMMIT`; else it is `unknown+DIGEST`.
    """
    if told := os.environ.get("HOTLOOP_COMMIT"):
        return told
    try:
        head = _git("rev-parse", "--short=12", "HEAD")
        changed = _git("status", "--porcelain", "--", *MEASURED)
    except (OSError, subprocess.CalledProcessError):
        return f"unknown+{source_digest()}"
    return f"{head}+{source_digest()}" if changed else head


def source_digest(root: Path = ROOT) -> str:
    """Return 8 hex digits over the package, the examples and the benchmarks."""
    digest = hashlib.sha256()
    suffixes = {".py", ".jinja"}
    for top in ("src", "examples", "benchmarks"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in suffixes:
                digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:8]


def _git(*args: str) -> str:
    return subprocess.run(
        ["git", *args], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def rows_of(path: Path, measured_commit: str) -> list[Row]:
    """Return the finished rows that the file holds of this very commit.

    A row with an `error` was not measured: it is left out, and tried again.
    """
    if not path.exists():
        return []
    record = json.loads(path.read_text(encoding="utf-8"))
    if record["commit"] != measured_commit:
        return []
    return [row for row in record["rows"] if row.get("error") is None]


def write_results(
    path: Path,
    *,
    command: str,
    environment: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    summary: Mapping[str, Any],
) -> None:
    """Write the file whole; a reader never sees half of it."""
    record = {
        "command": command,
        "commit": commit(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "environment": dict(environment),
        "rows": list(rows),
        "summary": dict(summary),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    os.replace(fresh, path)
