"""`hotloop report`: one HTML file on a suite, or on a single run."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from hotloop.cli import options
from hotloop.cli.output import Output, check_file, writing
from hotloop.cli.report_figures import check_folder, write_figures
from hotloop.cli.report_run import run_page
from hotloop.cli.report_suite import suite_page
from hotloop.errors import ForeignRun
from hotloop.report.html import render
from hotloop.report.page import Page
from hotloop.store.sqlite import JOURNAL_FILE
from hotloop.suite.folder import SUITE_FILE

DEFAULT_OUT = Path("report.html")


def report(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="SUITE|RUN", help="What `hotloop bench` or `hotloop optimize` wrote."
        ),
    ],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The file to write; an earlier one is replaced.")
    ] = DEFAULT_OUT,
    figures: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Also write each plot as SVG (and PNG) and each table as CSV there."
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Write all of a run or a suite, with its plots and kernels, into one HTML file."""
    check_file(out, like=DEFAULT_OUT.name)
    if figures is not None:
        check_folder(figures)
    page = read_page(folder)
    written = None if figures is None else write_figures(page, figures)
    size_bytes = _write(out, render(page))
    open_count = sum(not problem.is_over for problem in page.problems)
    record = {
        "folder": str(folder),
        "out": str(out),
        "size_bytes": size_bytes,
        "problems": len(page.problems),
        "open": open_count,
        "unreadable": [p.name for p in page.problems if p.status == "UNREADABLE"],
    }
    if written is not None:
        record["figures"] = written
    told = f", {open_count} not finished" if open_count else ""
    text = f"{out}: {len(page.problems)} problem(s){told}, {_size(size_bytes)}"
    if written is not None:
        text += f"\n{written.text}"
    Output(as_json=json).result(record, text)


def read_page(folder: Path) -> Page:
    """Return the report of a suite or of a run.

    Raises:
        ForeignRun: the folder holds neither.
        StoreError: it cannot be read.
    """
    if (folder / SUITE_FILE).is_file():
        return suite_page(folder)
    if (folder / JOURNAL_FILE).is_file():
        return run_page(folder)
    raise ForeignRun(
        f"{folder} holds neither a suite nor a run; give the --out of `hotloop bench` or of "
        "`hotloop optimize`"
    )


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.1f} MB" if size_bytes >= 1e6 else f"{size_bytes / 1e3:.0f} kB"


def _write(out: Path, html: str) -> int:
    """Write the file, whole or not at all; return its size.

    Raises:
        ConfigError: the path cannot be written.
        InfraError: the disk is full.
    """
    data = html.encode("utf-8", "replace")
    temporary = out.with_name(f".{out.name}.tmp{os.getpid()}")
    with writing(out):
        try:
            temporary.write_bytes(data)
            os.replace(temporary, out)
        except OSError:
            with suppress(OSError):  # it need not be there, and its file system may be read-only
                temporary.unlink()
            raise
    return len(data)
