"""Two runs beside each other: what was asked, what came of it, and how the best kernels differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hotloop.dashboard.attempt_record import read_files
from hotloop.dashboard.badges import activity_badge, best_words, device_badge
from hotloop.dashboard.listing import Place
from hotloop.dashboard.page_list import generator_words
from hotloop.dashboard.plot_budget import limits_of
from hotloop.dashboard.plot_progress import curve_of, progress_plot
from hotloop.dashboard.site import Site
from hotloop.dashboard.source_diff import FileDiff, compare_files
from hotloop.dashboard.state import RunState
from hotloop.dashboard.trouble import readable
from hotloop.report import display


@dataclass(frozen=True, slots=True)
class Beside:
    """One line of the comparison."""

    label: str
    one: str
    other: str

    @property
    def differs(self) -> bool:
        """Whether both sides say something else."""
        return self.one != self.other


def compare_page(site: Site, ids: tuple[str, str]) -> tuple[str, dict[str, Any]]:
    """Return the template and its values; without both ids a form to choose them.

    Raises:
        PageTrouble: one of the runs is not there or cannot be read.
    """
    choices = [p for p in site.listing().places if not p.is_suite]
    values: dict[str, Any] = {"title": "Compare two runs", "choices": choices, "chosen": ids}
    if not all(ids):
        return "compare.html.jinja", {**values, "places": ()}
    places = [site.run(place_id) for place_id in ids]
    states = [site.runs.get(place.folder) for place in places]
    curves = [
        curve_of(state, _label(n, place), f"/run/{place.id}/attempt/")
        for n, (place, state) in enumerate(zip(places, states, strict=True))
    ]
    return "compare.html.jinja", {
        **values,
        "places": places,
        "badges_lists": [[activity_badge(state), device_badge(state)] for state in states],
        "notices": _notices(states),
        "rows": _rows(states),
        "progress": progress_plot(states, curves),
        "diffs": _diffs(places, states),
        "bests": [None if s.best is None else s.best.id for s in states],
    }


def _label(n: int, place: Place) -> str:
    return f"{'AB'[n]}: {display.one_line(place.name, limit=40)}"


def _notices(states: Sequence[RunState]) -> list[str]:
    one, other = states
    notices = []
    if one.spec.problem_id != other.spec.problem_id:
        notices.append("These are runs of different problems: their values are no match.")
    if one.device != other.device:
        notices.append("One was judged on a GPU and the other on a CPU, where nothing is timed.")
    gpus = [None if s.info is None else s.info.environment.get("gpu") for s in states]
    if one.is_timed and other.is_timed and gpus[0] != gpus[1]:
        notices.append("They ran on different GPUs: compare ratios, not times.")
    return notices


def _rows(states: Sequence[RunState]) -> list[Beside]:
    told = [_told(state) for state in states]
    return [Beside(label, told[0][label], told[1][label]) for label in told[0]]


def _told(state: RunState) -> dict[str, str]:
    verdicts = [a.verdict for a in state.attempts if a.verdict is not None]
    first = next((a for a in state.attempts if a.verdict is not None and a.verdict.passed), None)
    spent = state.spending
    gpu = None if state.info is None else state.info.environment.get("gpu")
    return {
        "Problem": display.one_line(state.spec.problem_name),
        "Generator": generator_words(state),
        "Language": display.one_line(state.spec.language),
        "Device": display.one_line(gpu or state.device, limit=60),
        "Precision": display.one_line(state.problem.policy.precision),
        "Budget spent": ", ".join(f"{one.name} {one.told}" for one in limits_of(state))
        or "no limit",
        "Best kernel": best_words(state),
        "Attempts": str(len(state.attempts)),
        "Passed": str(sum(v.passed for v in verdicts)),
        "Failed": str(sum(not v.passed for v in verdicts)),
        "First correct after": display.NOT_MEASURED
        if first is None
        else display.seconds(first.finished_s),
        "Spent": display.seconds(spent.time_s),
        "Model calls": display.count(spent.calls),
        "Tokens": display.count(spent.tokens),
        "Dollars": display.dollars(spent.usd),
    }


def _diffs(places: Sequence[Place], states: Sequence[RunState]) -> list[FileDiff]:
    """Return how the best kernels differ; nothing where one has none, or it cannot be shown."""
    texts = []
    for place, state in zip(places, states, strict=True):
        if state.best is None:
            return []
        with readable(place.folder):
            files, trouble = read_files(place.folder, state.best)
        if trouble:
            return []
        texts.append(files)
    return compare_files(texts[0], texts[1])
