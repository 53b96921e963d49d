"""The page of one run: curve, lineage, budget, table of attempts, problem."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hotloop.core.verdict import Verdict
from hotloop.dashboard.attempt_record import read_whole
from hotloop.dashboard.attempt_table import ORDERS, Filters, attempt_table
from hotloop.dashboard.badges import activity_badge, best_words, device_badge
from hotloop.dashboard.listing import Place
from hotloop.dashboard.page_list import generator_words, utc
from hotloop.dashboard.plot_budget import burn_down_plot, limits_of
from hotloop.dashboard.plot_lineage import lineage_plot
from hotloop.dashboard.plot_progress import curve_of, progress_plot
from hotloop.dashboard.problem_record import problem_record
from hotloop.dashboard.site import Site
from hotloop.dashboard.state import RunState
from hotloop.dashboard.trouble import readable
from hotloop.report import display
from hotloop.report.endings import NEVER_JUDGED
from hotloop.report.highlight import highlight_within
from hotloop.report.page import Fact
from hotloop.report.sections import Limits, section
from hotloop.store.lock import last_words

SOURCE_BYTES = 60_000
"""HTML of the problem's source."""


def run_page(site: Site, place: Place, filters: Filters) -> tuple[str, dict[str, Any]]:
    """Return the template and its values.

    Raises:
        PageTrouble: the run cannot be read.
    """
    state = site.runs.get(place.folder)
    href = f"/run/{place.id}/attempt/"
    best = None
    if state.best is not None:
        with readable(place.folder):
            best = read_whole(place.folder, state.best.id)
    problem = problem_record(state, best)
    # Its own lineage is not shown here: the table and the graph are.
    shown = section(replace(problem, attempts=()), Limits(source_bytes=0, attempts=0))
    source, cut = highlight_within(display.visible(state.problem.source), "x.py", SOURCE_BYTES)
    curve = curve_of(state, "this run", href)
    return "run.html.jinja", {
        "title": display.one_line(state.spec.problem_name),
        "place": place,
        "state": state,
        "href": href,
        "badges_list": [
            activity_badge(state),
            device_badge(state),
            *(badge for badge in shown.badges if badge.text != problem.state),
        ],
        "tiles": _tiles(state),
        "limits": limits_of(state),
        "progress": progress_plot([state], [curve]),
        "lineage": lineage_plot(state, href),
        "burn_down": burn_down_plot(state),
        "table": attempt_table(problem, filters),
        "orders": ORDERS,
        "asked": _asked(state),
        "section": shown,
        "problem_facts": [fact for fact in shown.problem_facts if fact.label != "Class"],
        "source": source,
        "source_cut": cut,
        "stopped": _stopped(state),
    }


def _tiles(state: RunState) -> list[tuple[str, str]]:
    verdicts: list[Verdict | None] = [attempt.verdict for attempt in state.attempts]
    passed = sum(v is not None and v.passed for v in verdicts)
    waiting = sum(v is None for v in verdicts)
    left = f", {waiting} {NEVER_JUDGED if state.has_ended else 'open'}" if waiting else ""
    told = f"{passed} of {len(verdicts)} passed{left}"
    spent = state.spending
    tiles = [("best kernel so far", best_words(state)), ("attempts", told)]
    tiles.append(("spent of the budget's clock", display.seconds(spent.time_s)))
    if spent.calls:
        costs = f"{display.count(spent.calls)} calls, {display.count(spent.tokens)} tokens"
        tiles.append(("asked of the model", f"{costs}, {display.dollars(spent.usd)}"))
    return tiles


def _asked(state: RunState) -> list[Fact]:
    spec = state.spec
    return [
        Fact("Generator", generator_words(state)),
        Fact("Language", display.one_line(spec.language)),
        Fact("Device", display.one_line(state.device)),
        Fact("Precision", display.one_line(state.problem.policy.precision)),
        Fact("Seed", str(spec.seed)),
        Fact("Began", f"{utc(state.first_at)} UTC"),
        Fact("Last written", f"{utc(state.last_at)} UTC"),
    ]


def _stopped(state: RunState) -> str:
    """Return why a run ended, where more than a word is known; empty else."""
    stop, words = state.stop, last_words(state.folder)
    if words:
        return display.one_line(f"failed: {words}", limit=500)
    if stop is None or not stop.get("message"):
        return ""
    return display.one_line(f"{stop.get('reason')}: {stop['message']}", limit=500)
