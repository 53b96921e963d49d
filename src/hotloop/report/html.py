"""The report as one HTML file: nothing is fetched, nothing foreign is run.

Covered: every text that did not come from this package is escaped (the templates escape by default,
and what is marked safe is made in `svg` and `highlight` out of escaped parts); a content security
policy that allows this page's own style sheet and script by their hash, pictures out of the page
itself (to save a plot as PNG), and nothing else: no network, no inline handlers, no inline styles.
Not covered: what a reader does with a source.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from hotloop.report import display, tables
from hotloop.report.lineage import failures_by_class
from hotloop.report.page import Page, ProblemPage
from hotloop.report.plot import Plot
from hotloop.report.plots import AXES, BETTER, fast_p_plot, solve_rate_plot, speedup_plot
from hotloop.report.plots_problems import class_plot, speedups_plot
from hotloop.report.sections import Limits, section
from hotloop.report.tables import Table

_TEMPLATES = Path(__file__).parent / "templates"
PLOT_STYLE = "plots.css"
"""How pictures are drawn, here and in the dashboard."""
SOURCE_BYTES, LEAST_SOURCE, MOST_SOURCE = 2_400_000, 3_000, 40_000
"""HTML of all sources together, and of one problem's at least and at most."""
LINEAGE_ROWS, LEAST_ROWS, MOST_ROWS = 3_000, 8, 200
"""Attempts of all problems together, and of one problem at least and at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """The figures of one column: tables and plots."""

    name: str
    is_timed: bool
    tiles: Sequence[tuple[str, str]]
    """What stands at the top: label and value."""
    tables: Sequence[Table]
    plots: Sequence[Sequence[Plot]]
    """In rows."""


def render(page: Page) -> str:
    """Return the whole page as HTML."""
    limits = _limits(len(page.problems))
    style, script = asset("report.css") + asset(PLOT_STYLE), asset("report.js")
    return _template().render(
        page=page,
        policy=_policy(style, script),
        style=Markup(style),
        script=Markup(script),
        columns=columns_of(page),
        precision=tables.precision_tables(page.figures.get("precision", ())),
        definitions=page.figures.get("definitions", {}),
        sections=[section(problem, limits) for problem in page.problems],
        open_count=sum(not problem.is_over for problem in page.problems),
        choices=_choices(page.problems),
        not_measured=display.NOT_MEASURED,
    )


def _limits(problems: int) -> Limits:
    share = max(problems, 1)
    return Limits(
        source_bytes=min(MOST_SOURCE, max(LEAST_SOURCE, SOURCE_BYTES // share)),
        attempts=min(MOST_ROWS, max(LEAST_ROWS, LINEAGE_ROWS // share)),
    )


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["line"] = display.one_line
    environment.tests["link"] = lambda cell: isinstance(cell, tables.Link)
    return environment.get_template("report.html.jinja")


def asset(name: str) -> str:
    """Return a file of the page's own."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Return the content security policy: what is not named in it is forbidden."""
    hashes = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, script)
    ]
    return (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _choices(problems: Sequence[ProblemPage]) -> dict[str, list[str]]:
    """Return what the filters offer: only what occurs."""
    return {
        "state": sorted({p.state for p in problems}),
        "status": sorted({p.status for p in problems}),
        "level": sorted({p.level for p in problems}),
        "class": sorted({p.operator_class for p in problems}),
    }


def columns_of(page: Page) -> list[Column]:
    """Return the figures of each column."""
    return [_column(page, name) for name in page.figures.get("columns", {})]


def _column(page: Page, name: str) -> Column:
    figures = page.figures["columns"][name]
    problems = [p for p in page.problems if p.column == name]
    groups = tables.groups_of(figures)
    is_timed = figures["together"]["all"]["speedup"] is not None
    made = [tables.correct_table(groups)]
    if is_timed:
        made += [tables.speed_table(groups, which) for which in tables.POPULATIONS]
        made.append(tables.own_table(groups))
    made.append(tables.spent_table(groups))
    if is_timed:
        made.append(tables.memory_table(groups))
    made += _failure_table(problems)
    made += tables.listed_tables(figures, {p.name: p.key for p in problems})
    speed = _speed_plots(figures, problems) if is_timed else []
    budget = _budget_plots(figures, is_timed)
    return Column(
        name=name,
        is_timed=is_timed,
        tiles=_tiles(figures["together"]),
        tables=made,
        plots=[*speed, *budget, [class_plot(figures["by_class"])]],
    )


def _failure_table(problems: Sequence[ProblemPage]) -> list[Table]:
    found = failures_by_class(problems)
    if not found:
        return []
    head = sorted({status for mine in found.values() for status in mine})
    rows = [(name, *(str(mine.get(s, 0)) for s in head)) for name, mine in found.items()]
    return [Table(title="Failed verdicts by class of operator", head=("", *head), rows=rows)]


def _speed_plots(
    figures: Mapping[str, Any], problems: Sequence[ProblemPage]
) -> list[Sequence[Plot]]:
    """Return a row of fast_p and one of the sorted speed-ups, by level."""
    levels = {level: [p for p in problems if p.level == level] for level in figures["levels"]}
    shares = [fast_p_plot(f"fast_p, level {level}", mine) for level, mine in levels.items()]
    if len(levels) > 1:
        shares.append(fast_p_plot("fast_p, all levels", problems))
    ratios = [
        speedups_plot(f"All problems of level {level}, over the better of both", mine, BETTER)
        for level, mine in levels.items()
    ]
    return [shares, ratios]


def _budget_plots(figures: Mapping[str, Any], is_timed: bool) -> list[Sequence[Plot]]:
    """Return the curves over what was spent, a row a kind; on a CPU the solve rate alone."""
    levels = {n: found for n, found in figures["curves"].items() if n != "together"}
    by_axis = {axis: {n: found[axis] for n, found in levels.items()} for axis in AXES}
    rates = [solve_rate_plot(axis, by_axis[axis]) for axis in AXES]
    return [rates, [speedup_plot(axis, by_axis[axis]) for axis in AXES]] if is_timed else [rates]


def _tiles(together: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the headline: of the decidable problems, for a constant is computed in no time."""
    group, every = together["decidable"], together["all"]["problems"]
    judged = tables.is_judged(group)
    left_out = every - group["problems"]
    counted = f"decidable problems of {every}" if left_out else "problems"
    tiles = [(counted, str(group["problems"]))]
    if group["speedup"] is None:
        fast = tables.fast_tier_correct(group)
        return [*tiles, ("correct at the fast tier, the only one on a CPU", fast)]
    share = display.number(group["correct_percent"] if judged else None, ".1f")
    correct = f"{group['correct']} ({share} %)" if judged else display.NOT_MEASURED
    better = group["speedup"][BETTER]
    measured = better["best"] is not None
    mean = display.ratio(better["geometric_mean"] if measured else None)
    return [
        *tiles,
        ("correct at the fast tier", tables.fast_tier_correct(group)),
        ("correct, final tier", correct),
        ("wins over the better of both", str(better["wins"]) if judged else display.NOT_MEASURED),
        ("geometric mean over the better of both, failures as 1.0x", mean),
        ("best", display.ratio(better["best"])),
    ]
