"""The results file of a mutation run."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from benchmarks.mutation.score import Row, kind_of
from benchmarks.results_file import write_results

WHOLE = ("survivor", "not_shown_refused", "out_of_bounds_passed", "fault")
"""Kinds of mutants whose difference and witness the file keeps."""


def result_rows(rows: Sequence[Row]) -> list[Row]:
    """Return one short row a mutant; those that one should look at come whole."""
    short = []
    for row in sorted(rows, key=lambda r: (r["substrate"], r["group"], r["rule"], r["key"])):
        kind = kind_of(row)
        kept = {key: row[key] for key in ("key", "substrate", "family", "rule", "group")}
        kept["kind"] = kind
        if "verdict" in row:
            kept["status"] = row["verdict"]["status"]
        if kind in WHOLE:
            kept |= {k: row[k] for k in ("diff", "oracle", "verdict", "fault") if k in row}
        short.append(kept)
    return short


def write(path: Path, *, rows: Sequence[Row], found: Row, options: str) -> None:
    """Write the results file; `options` are those that differ from the make target's."""
    environment = {
        "device": "cpu",
        "isolation": "T1",
        "python": platform.python_version(),
        "torch": version("torch"),
        "triton": version("triton"),
        "cpu_count": os.cpu_count(),
    }
    command = "make bench-mutation" + (f' ARGS="{options}"' if options else "")
    write_results(path, command=command, environment=environment, rows=rows, summary=found)
