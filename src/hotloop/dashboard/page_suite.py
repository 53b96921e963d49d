"""The page of a suite: problems by state and class, and the report's figures and plots of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from hotloop.dashboard.listing import Place
from hotloop.dashboard.site import Site
from hotloop.dashboard.suite_state import SuiteState
from hotloop.dashboard.trouble import PageTrouble, readable
from hotloop.report import display, tables
from hotloop.report.page import CPU, Fact, ProblemPage
from hotloop.report.plot import Plot
from hotloop.report.plots import AXES, BETTER, fast_p_plot, solve_rate_plot, speedup_plot
from hotloop.report.plots_problems import class_plot, speedups_plot
from hotloop.report.sections import Badge, Limits, section
from hotloop.report.tables import Table
from hotloop.suite.figures_classes import operator_class
from hotloop.suite.folder import Member, SuiteRecord, read_suite
from hotloop.suite.standing import State


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemLine:
    """One problem of the table."""

    key: str
    name: str
    title: str
    level: str
    operator_class: str
    state: str
    run_id: str | None
    """None where it has no run yet."""
    badges: Sequence[Badge] = ()
    result: str = ""
    attempts: int | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteFilters:
    """Which problems are asked for."""

    state: str = ""
    group: str = ""
    """A class of operators."""
    text: str = ""

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> SuiteFilters:
        """Return the filters of a URL."""
        return cls(**{n: query.get(n, "")[:200] for n in ("state", "group", "text")})

    def fits(self, line: ProblemLine) -> bool:
        """Whether a problem is asked for."""
        words = f"{line.name} {line.title} {' '.join(b.text for b in line.badges)}".lower()
        return (
            self.state in ("", line.state)
            and self.group in ("", line.operator_class)
            and all(word in words for word in self.text.lower().split())
        )

    def link(self, **changed: str) -> str:
        """Return the query of the same filters with some changed."""
        values = {"state": self.state, "group": self.group, "text": self.text, **changed}
        kept = {name: value for name, value in values.items() if value}
        return f"?{urlencode(kept)}" if kept else "?"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPart:
    """The figures of one generator, precision and device."""

    name: str
    is_timed: bool
    plots: Sequence[Sequence[Plot]]
    tables: Sequence[Table]


def suite_page(site: Site, place: Place, filters: SuiteFilters) -> tuple[str, dict[str, Any]]:
    """Return the template and its values; problems that are being read have no verdict yet.

    Raises:
        PageTrouble: the suite cannot be read.
    """
    state = site.suites.peek(place.folder)
    if isinstance(state, PageTrouble):
        raise state
    with readable(place.folder):
        record = read_suite(place.folder) if state is None else state.record
    runs = site.listing().members(place)
    if state is None:
        lines = [_unread(member, runs) for member in record.problems]
    else:
        members = zip(record.problems, state.problems, strict=True)
        lines = [_line(member, problem, runs) for member, problem in members]
    return "suite.html.jinja", {
        "title": f"{display.one_line(record.suite)}: {len(record.problems)} problems",
        "place": place,
        "is_read": state is not None,
        "facts_list": _facts(record),
        "device": display.one_line(record.options.get("device")),
        "states": _states(lines),
        "groups": sorted({line.operator_class for line in lines}),
        "filters": filters,
        "lines": [line for line in lines if filters.fits(line)],
        "total": len(lines),
        "columns": [] if state is None else _columns(state),
    }


def _facts(record: SuiteRecord) -> list[Fact]:
    options = record.options
    model = options.get("model") if options.get("generator") == "model" else "builtin"
    return [
        Fact("Generator", display.one_line(model, limit=200)),
        Fact("Strategy", display.one_line(options.get("strategy"))),
        Fact("Language", display.one_line(options.get("language"))),
        Fact("Device", display.one_line(options.get("device"))),
        Fact("Budget of a problem", display.seconds(record.limits.get("wall_s"))),
    ]


def _states(lines: Sequence[ProblemLine]) -> list[tuple[str, int]]:
    found = Counter(line.state for line in lines)
    order = [state.value for state in State]
    return sorted(found.items(), key=lambda i: order.index(i[0]) if i[0] in order else len(order))


def _unread(member: Member, runs: Mapping[str, Place]) -> ProblemLine:
    return ProblemLine(
        key=f"{member.level}-{member.number}",
        name=f"{member.level}/{member.number}",
        title=display.one_line(member.title, limit=80),
        level=str(member.level),
        operator_class=operator_class(member.level, member.title),
        state="being read",
        run_id=_run_id(member, runs),
    )


def _line(member: Member, problem: ProblemPage, runs: Mapping[str, Place]) -> ProblemLine:
    shown = section(problem, Limits(source_bytes=0, attempts=0))
    is_plain = problem.status.endswith("PASSED") or problem.state == State.OPEN
    return ProblemLine(
        key=problem.key,
        name=display.one_line(problem.name, limit=40),
        title=display.one_line(problem.title, limit=80),
        level=problem.level,
        operator_class=problem.operator_class,
        state=problem.state,
        run_id=_run_id(member, runs),
        badges=[badge for badge in shown.badges if badge.text != problem.state],
        result=shown.result,
        attempts=len(problem.attempts),
        why="" if is_plain else display.one_line(problem.why, limit=160),
    )


def _run_id(member: Member, runs: Mapping[str, Place]) -> str | None:
    place = runs.get(member.folder.rpartition("/")[2])
    return None if place is None else place.id


def _columns(state: SuiteState) -> list[ColumnPart]:
    return [
        _column(name, figures, [p for p in state.problems if p.column == name])
        for name, figures in state.figures["columns"].items()
    ]


def _column(name: str, figures: Mapping[str, Any], problems: Sequence[ProblemPage]) -> ColumnPart:
    is_timed = all(problem.device != CPU for problem in problems)
    curves = {level: found for level, found in figures["curves"].items() if level != "together"}
    by_axis = {axis: {n: found[axis] for n, found in curves.items()} for axis in AXES}
    plots: list[Sequence[Plot]] = [[class_plot(figures["by_class"])]]
    if is_timed:
        levels = {n: [p for p in problems if p.level == n] for n in figures["levels"]}
        plots.append([
            plot
            for n, mine in levels.items()
            for plot in (
                fast_p_plot(f"fast_p, level {n}", mine),
                speedups_plot(f"All problems of level {n}, over the better of both", mine, BETTER),
            )
        ])  # fmt: skip
    plots.append([solve_rate_plot(axis, by_axis[axis]) for axis in AXES])
    if is_timed:
        plots.append([speedup_plot(axis, by_axis[axis]) for axis in AXES])
    groups = tables.groups_of(figures)
    made = [tables.correct_table(groups), tables.spent_table(groups)]
    return ColumnPart(
        name=display.one_line(name, limit=80), is_timed=is_timed, plots=plots, tables=made
    )
