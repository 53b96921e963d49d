"""All plots and tables of a report, each with the name of its file."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hotloop.report import tables
from hotloop.report.html import columns_of
from hotloop.report.lineage import lineage
from hotloop.report.page import CPU, Page, ProblemPage
from hotloop.report.standalone import figure_svg
from hotloop.report.tables import Link, Table
from hotloop.report.verdict_facts import timing_table

NAME_CHARACTERS = 80
PROBLEMS = "problems"
"""The folder of what belongs to one problem of a suite."""
_FORMULA = re.compile(r"[=+\-@\t\r]")


@dataclass(frozen=True, slots=True)
class Exported:
    """One file."""

    name: str
    """Path below the folder, with its suffix: `.svg` or `.csv`."""
    text: str


def exported(page: Page) -> list[Exported]:
    """Return a report's plots as SVG and its tables as CSV; no two have the same name."""
    files: dict[str, Exported] = {}
    for name, suffix, text in (*_of_figures(page), *_of_problems(page)):
        unique, n = f"{name}{suffix}", 1
        while unique in files:
            n += 1
            unique = f"{name}-{n}{suffix}"
        files[unique] = Exported(unique, text)
    return list(files.values())


def csv_text(table: Table) -> str:
    """Return a table as CSV (RFC 4180), as a spreadsheet may open it.

    A cell that a spreadsheet would run as a formula is made text by a quote; numbers stay numbers.
    """
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\r\n")
    writer.writerow([_cell(name) for name in table.head])
    for row in table.rows:
        writer.writerow([_cell(one.text if isinstance(one, Link) else one) for one in row])
    return written.getvalue()


def _cell(text: str) -> str:
    return f"'{text}" if _FORMULA.match(text) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _of_figures(page: Page) -> Iterator[tuple[str, str, str]]:
    columns = columns_of(page)
    for column in columns:
        place = f"{_slug(column.name)}/" if len(columns) > 1 else ""
        for row in column.plots:
            for plot in row:
                if plot.picture is not None:
                    yield f"{place}{_slug(plot.title)}", ".svg", figure_svg(plot)
        yield from _of_tables(column.tables, place)
    yield from _of_tables(tables.precision_tables(page.figures.get("precision", ())), "")


def _of_tables(found: Iterable[Table], place: str) -> Iterator[tuple[str, str, str]]:
    for table in found:
        yield f"{place}{_slug(table.title)}", ".csv", csv_text(table)


def _of_problems(page: Page) -> Iterator[tuple[str, str, str]]:
    for problem in page.problems:
        place = f"{PROBLEMS}/{_slug(problem.key)}-" if len(page.problems) > 1 else ""
        for plot in problem.plots:
            if plot.picture is not None:
                yield f"{place}{_slug(plot.title)}", ".svg", figure_svg(plot)
        timing = None if problem.verdict is None else timing_table(problem.verdict)
        if timing is not None:
            yield f"{place}timing", ".csv", csv_text(timing)
        if problem.attempts:
            yield f"{place}attempts", ".csv", csv_text(_attempts(problem))


def _attempts(problem: ProblemPage) -> Table:
    """Return all attempts, also those for which the page has no room."""
    is_timed = problem.device != CPU
    figures = ("time", "speed-up") if is_timed else ("static cost",)
    head = ("attempt", "action", "from", "status", "tier", *figures, "after", "told", "best")
    rows = [
        (
            str(one.id), one.action, one.parents, one.status, one.tier,
            *((one.time, one.speedup) if is_timed else (one.time,)), one.after, one.told,
            "best" if one.is_best else "",
        )
        for one in lineage(problem, len(problem.attempts)).stations
    ]  # fmt: skip
    return Table(title="Attempts", head=head, rows=rows)


def _slug(title: str) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    return words[:NAME_CHARACTERS].strip("-") or "hotloop"
