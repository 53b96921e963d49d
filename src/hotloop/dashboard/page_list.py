"""The list of runs and suites."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

from hotloop.dashboard.badges import activity_badge, best_words, device_badge
from hotloop.dashboard.listing import Place
from hotloop.dashboard.plot_budget import Limit, limits_of
from hotloop.dashboard.site import Site
from hotloop.dashboard.state import RunState
from hotloop.dashboard.suite_state import SuiteState
from hotloop.dashboard.trouble import PageTrouble
from hotloop.report import display
from hotloop.report.sections import Badge
from hotloop.suite.figures_rows import FAST_TIER_PASSED, PASSED

PATIENCE_S = 0.5
"""Runs that could not be read within this time are read behind the page's back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """One run of the list."""

    place: Place
    trouble: str = ""
    """Why it cannot be read."""
    is_read: bool = True
    problem: str = ""
    generator: str = ""
    badges: tuple[Badge, ...] = ()
    attempts: int = 0
    passed: int = 0
    best: str = ""
    limit: Limit | None = None
    """The one that has the least left."""
    last_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteLine:
    """One suite of the list."""

    place: Place
    trouble: str = ""
    is_read: bool = True
    device: str = ""
    problems: int = 0
    over: int = 0
    solved: int = 0
    states: tuple[tuple[str, int], ...] = ()


def list_page(site: Site) -> tuple[str, dict[str, Any]]:
    """Return the template and its values."""
    listing = site.listing()
    until = time.monotonic() + PATIENCE_S
    lines = [run_line(site, place, until) for place in listing.runs]
    lines.sort(key=lambda line: line.last_at, reverse=True)
    return "list.html.jinja", {
        "title": "Runs and suites",
        "runs": lines,
        "suites": [_suite_line(site, place) for place in listing.suites],
        "choices": listing.runs,
    }


def run_line(site: Site, place: Place, until: float) -> RunLine:
    """Return the line of a run; one that is not read yet by then says so."""
    try:
        if time.monotonic() < until:
            state: RunState | PageTrouble | None = site.runs.get(place.folder)
        else:
            state = site.runs.peek(place.folder)
    except PageTrouble as trouble:
        state = trouble
    if state is None:
        return RunLine(place=place, is_read=False)
    if isinstance(state, PageTrouble):
        return RunLine(place=place, trouble=display.one_line(state.message, limit=400))
    limits = limits_of(state)
    return RunLine(
        place=place,
        problem=display.one_line(state.spec.problem_name),
        generator=generator_words(state),
        badges=(activity_badge(state), device_badge(state)),
        attempts=len(state.attempts),
        passed=sum(a.verdict is not None and a.verdict.passed for a in state.attempts),
        best=best_words(state),
        limit=limits[0] if limits else None,
        last_at=utc(state.last_at),
    )


def generator_words(state: RunState) -> str:
    """Return who writes the kernels of a run."""
    spec = state.spec
    name = spec.options.get("model") if spec.generator == "model" else spec.generator
    return display.one_line(f"{name}, {spec.strategy}", limit=80)


def utc(epoch_s: float) -> str:
    """Return a moment as text that can be sorted."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(epoch_s))


def _suite_line(site: Site, place: Place) -> SuiteLine:
    state: SuiteState | PageTrouble | None = site.suites.peek(place.folder)
    if state is None:
        return SuiteLine(place=place, is_read=False)
    if isinstance(state, PageTrouble):
        return SuiteLine(place=place, trouble=display.one_line(state.message, limit=400))
    problems = state.problems
    return SuiteLine(
        place=place,
        device=display.one_line(state.record.options.get("device")),
        problems=len(problems),
        over=sum(problem.is_over for problem in problems),
        solved=sum(problem.status in (PASSED, FAST_TIER_PASSED) for problem in problems),
        states=tuple(Counter(problem.state for problem in problems).most_common()),
    )
