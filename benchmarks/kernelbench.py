"""What suites of KernelBench came to, as a results file: a row a problem, and all figures.

    make bench-kernelbench ARGS="--suite runs/kernelbench-1f2e3d4c"
    python -m benchmarks.kernelbench --suite MODEL_SUITE --suite BUILTIN_SUITE --note "..."

Nothing is run here: `hotloop bench` made the suites. Their journals are read, and the figures are
those of `hotloop bench` itself, so this file can say nothing that the suites do not.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.results_file import RESULTS, Row, write_results
from hotloop.core.record import to_json
from hotloop.errors import HotloopError
from hotloop.suite.figures import figures_of
from hotloop.suite.figures_rows import RunRow, SuiteRun, read_rows
from hotloop.suite.folder import Member, SuiteRecord, read_suite
from hotloop.suite.recorded import recorded_run

DEFAULT = RESULTS / "kernelbench_h200.json"
COMMAND = "make bench-kernelbench"
_ENVIRONMENT = ("gpu", "driver", "cuda", "torch", "triton", "python", "isolation")


def main(argv: Sequence[str] | None = None) -> int:
    """Write the results file; return 0 when every problem has an end."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--suite", type=Path, action="append", required=True, help="its folder")
    parser.add_argument("--model", help="who answered, where the suites do not say it")
    parser.add_argument("--note", action="append", default=[], help="what a reader must know")
    parser.add_argument("--out", type=Path, default=DEFAULT)
    args = parser.parse_args(argv)
    try:
        suites = [(folder, read_suite(folder)) for folder in args.suite]
        rows = read_rows(
            _run(folder, record, member, args.model)
            for folder, record in suites
            for member in record.problems
        )
    except (HotloopError, ValueError) as exc:
        print(f"kernelbench: {exc}", file=sys.stderr)
        return 2
    summary = figures_of(rows) | {
        "notes": args.note,
        "suites": [_told(record, args.model) for _, record in suites],
        "unfinished": [r.name for r in rows if r.is_waiting and r.undecidable is None],
    }
    write_results(
        args.out,
        command=COMMAND,
        environment=_environment(rows),
        rows=_without_paths([row_of(row) for row in rows], args.suite),
        summary=_without_paths(summary, args.suite),
    )
    waiting = len(summary["unfinished"])
    print(f"{args.out}: {len(rows)} problems, {waiting} wait for answers")
    return 1 if waiting else 0


def _run(folder: Path, record: SuiteRecord, member: Member, model: str | None) -> SuiteRun:
    """Return a problem of a suite, in its suite's column also where its run cannot say which."""
    run = recorded_run(folder, record, member)
    column = run.column._replace(precision=record.precision)
    return replace(run, column=column, start_of=_author(run.start_of, record, model))


def _author(author: str, record: SuiteRecord, model: str | None) -> str:
    """Return who wrote a kernel, without a path of the machine where it was written."""
    if not author.startswith("dir:"):
        return author
    return model or "dir:" if author == record.options.get("model") else "dir:"


def _told(record: SuiteRecord, model: str | None) -> Mapping[str, Any]:
    """Return what was asked of a suite, without paths of the machine where it ran."""
    options = dict(record.options)
    if str(options.get("model") or "").startswith("dir:"):
        options["model"] = model or "dir:"
    if options.get("examples"):
        options["examples"] = len(options["examples"])
    told = {"options": options, "limits": dict(record.limits), "problems": len(record.problems)}
    if not record.starts:
        return told
    authors = {_author(one.author, record, model) for one in record.starts.values()}
    starts = {"kernels": len(record.starts), "of": sorted(authors), "only": record.start_only}
    return told | {"starts": starts}


def _without_paths(record: Any, folders: Sequence[Path]) -> Any:
    """Return a JSON value in which a suite's folder is called `SUITE`."""
    text = json.dumps(record)
    for folder in folders:
        for path in (folder.resolve(), folder):
            text = text.replace(json.dumps(str(path))[1:-1], "SUITE")
    return json.loads(text)


def row_of(row: RunRow) -> Row:
    """Return the row of one problem as a results file holds it."""
    performance = row.performance
    started = row.best_is_start is not None
    start = {"best_is_start": row.best_is_start, "start_of": row.run.start_of} if started else {}
    return start | {
        "key": f"{row.column.name} {row.name}",
        "problem": f"kernelbench/{row.name}",
        "title": row.run.title,
        "generator": row.column.generator,
        "precision": row.column.precision,
        "class": row.operator_class,
        "status": row.status,
        "why": row.why,
        "rankable": row.rankable,
        "undecidable": row.undecidable,
        "attempts": len(row.attempts),
        "calls": sum(1 for attempt in row.attempts if attempt.asked is not None),
        "statuses": [a.verdict.status.value for a in row.attempts if a.verdict is not None],
        "best_attempt": None if row.best is None else row.best.id,
        "candidate": None if row.final is None else row.final.candidate_id,
        "short_final": None if row.final is None else row.final.short,
        "mode": None if row.final is None else row.final.mode,
        "library_anchor": None if row.anchor is None else row.anchor.found,
        "performance": None if performance is None else to_json(performance),
        "baselines_ms_at_load": None if row.info is None else dict(row.info.baselines_ms),
        "error": None,
    }


def _environment(rows: Sequence[RunRow]) -> dict[str, Any]:
    """Return where kernels were judged: each value, or all of them where they differ."""
    seen = [row.info.environment for row in rows if row.info is not None]
    found = {name: sorted({str(e[name]) for e in seen if e.get(name)}) for name in _ENVIRONMENT}
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


if __name__ == "__main__":
    sys.exit(main())
