"""The results file of a mutation run."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.mutation.score import DEFAULTS, Row, kind_of
from benchmarks.results_file import write_results

WHOLE = ("survivor", "not_shown_refused", "out_of_bounds_passed", "fault")
"""Kinds of mutants whose difference and witness the file keeps."""
TARGETS = {"cpu": "make bench-mutation", "cuda": "make bench-mutation-gpu"}


def result_rows(rows: Sequence[Row]) -> list[Row]:
    """Return one short row a mutant; those that one should look at come whole."""
    short = []
    for row in sorted(rows, key=lambda r: (r["substrate"], r["group"], r["rule"], r["key"])):
        kind = kind_of(row)
        kept = {key: row[key] for key in ("key", "substrate", "family", "rule", "group")}
        kept |= {"kind": kind, "language": row.get("language", DEFAULTS["language"])}
        kept |= {key: row[key] for key in ("commit",) if key in row}
        if "verdict" in row:
            kept["status"] = row["verdict"]["status"]
        final_survivor = False
        if "final" in row:
            kept |= {"final_status": row["final"]["status"], "sampled": row["sampled"]}
            final_survivor = kind_of(row, "final") == "survivor"
        if kind in WHOLE or final_survivor:
            names = ("diff", "oracle", "verdict", "final", "fault")
            kept |= {k: row[k] for k in names if k in row}
        short.append(kept)
    return short


def write(
    path: Path,
    *,
    rows: Sequence[Row],
    found: Row,
    options: str,
    machine: Mapping[str, Any],
) -> None:
    """Write the results file.

    Args:
        path: the file.
        rows: of `result_rows`.
        found: the summary.
        options: those that differ from the make target's.
        machine: what a judge says of its environment; may be empty.
    """
    environment = {
        "device": found["device"],
        "isolation": "T1",
        "python": platform.python_version(),
        "torch": version("torch"),
        "triton": version("triton"),
        "cpu_count": os.cpu_count(),
        **machine,
    }
    command = TARGETS[found["device"]] + (f' ARGS="{options}"' if options else "")
    write_results(path, command=command, environment=environment, rows=rows, summary=found)
