"""The form of a results file: where every figure that the project claims comes from."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"


def commit() -> str:
    """Return the commit that ran, with `+` when the tree had changes; `unknown` without git."""
    try:
        head = _git("rev-parse", "--short=12", "HEAD")
        return head + ("+" if _git("status", "--porcelain", "--", "src") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*args: str) -> str:
    return subprocess.run(
        ["git", *args], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


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
