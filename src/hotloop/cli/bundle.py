"""`hotloop bundle`: collect what runs want judged elsewhere into one file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from hotloop import api
from hotloop.cli import options
from hotloop.cli.output import Output, check_file
from hotloop.core.audit import Audit
from hotloop.core.command_line import quoted
from hotloop.core.problem import Problem
from hotloop.core.verdict import Tier
from hotloop.errors import ConfigError
from hotloop.store.failure import store_errors
from hotloop.store.sqlite import JOURNAL_FILE
from hotloop.suite.folder import RUNS_FOLDER, SUITE_FILE
from hotloop.verify.bundle import Bundle, Item, Key, write_bundle
from hotloop.verify.outside import pending_items
from hotloop.verify.outside_notes import last_audit
from hotloop.wiring import has_calls_left, shows_counters


def bundle(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Run folders, suites, or folders of runs."),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The bundle to write.")],
    json: options.Json = False,
) -> None:
    """Write the pending candidates of runs with --judge bundle into one file."""
    output = Output(as_json=json)
    check_file(out, like="run.bundle")
    problems: dict[str, Problem] = {}
    items: dict[Key, Item] = {}
    audits: dict[str, Audit] = {}
    told: list[str] = []
    for folder in run_folders(runs):
        with api.load_run(folder) as reader:
            spec = reader.spec()
            wants_counters = shows_counters(spec) and has_calls_left(spec, reader.attempts())
            found = pending_items(reader, wants_counters=wants_counters, short=spec.has_short_final)
            if found:
                problem = reader.problem()
                problems[problem.id] = problem
                if (audit := last_audit(reader)) is not None:
                    audits[problem.id] = audit
                told.append(f"{folder}: {problem.name}: {_counts(found)}")
            for item in found:  # of two that ask for the same final, the full one is judged
                if not item.short or item.key not in items:
                    items[item.key] = item
    record: dict[str, object] = {
        "out": None,
        "problems": len(problems),
        "items": len(items),
        "runs": told,
    }
    if not items:
        output.result(record, "nothing is pending: no run waits for a judge elsewhere")
        raise typer.Exit(1)
    write_bundle(out, Bundle(problems=problems, items=tuple(items.values()), audits=audits))
    record["out"] = str(out)
    judge = quoted(["hotloop", "judge", "--bundle", out])
    closing = f"{out}: {len(items)} to judge; next, on a GPU machine: {judge}"
    output.result(record, "\n".join([*told, closing]))


def run_folders(given: Sequence[Path]) -> list[Path]:
    """Return each run folder that was named, or lies in a suite or folder that was named.

    Raises:
        ConfigError: a path is no folder, or holds no run.
    """
    found: dict[Path, None] = {}
    for path in given:
        with store_errors(path):
            if (path / JOURNAL_FILE).is_file():
                found[path] = None
                continue
            if not path.is_dir():
                raise ConfigError(f"{path}: expected a run folder, there is none; check the path")
            runs = path / RUNS_FOLDER if (path / SUITE_FILE).is_file() else path
            inside = sorted(p.parent for p in runs.glob(f"*/{JOURNAL_FILE}"))
        if not inside:
            raise ConfigError(f"{path} holds no hotloop run; give the --out of an earlier one")
        found.update(dict.fromkeys(inside))
    return list(found)


def _counts(items: Sequence[Item]) -> str:
    """Return like `3 fast, 1 final`."""
    counts = {
        "to be loaded": sum(item.tier is None for item in items),
        "fast": sum(item.tier is Tier.FAST for item in items),
        "final": sum(item.tier is Tier.FINAL for item in items),
    }
    return ", ".join(
        what if what == "to be loaded" else f"{count} {what}"
        for what, count in counts.items()
        if count
    )
