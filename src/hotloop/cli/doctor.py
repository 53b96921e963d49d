"""`hotloop doctor`: what this machine can and cannot do, and how to mend it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from hotloop.cli import checks
from hotloop.cli.checks import Check
from hotloop.cli.model_check import check_model, report_text
from hotloop.cli.output import Output


def doctor(
    model: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Test this model with one tiny call, and nothing else: PRESET:NAME[@URL], "
            "dir:PATH or replay:FILE.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Say what this machine can and cannot do, and how to mend it."""
    if model is not None:
        report = check_model(model, os.environ)
        Output(as_json=json).result(report, report_text(report))
        raise typer.Exit(report.exit_code)
    here = Path.cwd()
    found = [
        checks.python(),
        *checks.torch_and_triton(),
        *checks.gpu(),
        checks.nvcc(),
        checks.distribution("cuda-core", "compiles and launches CUDA C++ candidates"),
        checks.distribution("cupti-python", "times kernels by GPU activity records"),
        checks.model_keys(os.environ),
        *checks.isolation(),
        checks.readable_by_others(),
        checks.sqlite(),
        checks.disk(here),
        checks.file_system(here),
        checks.writable(here),
    ]
    record = {"ok": not _missing(found), "checks": found}
    Output(as_json=json).result(record, _table(found))


def _missing(found: list[Check]) -> list[str]:
    return [c.name for c in found if c.state == "missing"]


def _table(found: list[Check]) -> str:
    width = max(len(c.name) for c in found)
    lines = []
    for check in found:
        lines.append(f"{check.state:8} {check.name:{width}}  {check.found}")
        if check.mend:
            lines.append(f"{'':8} {'':{width}}  -> {check.mend}")
    missing = _missing(found)
    lines.append(
        f"hotloop cannot work here yet: {', '.join(missing)}" if missing else "hotloop works here"
    )
    return "\n".join(lines)
