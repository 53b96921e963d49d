"""Pictures with a mark for each problem or class: all speed-ups, and what became of each class."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from hotloop.report import display, svg
from hotloop.report.metrics import WIN_OVER, Speedup
from hotloop.report.page import ProblemPage
from hotloop.report.plot import Key, Plot
from hotloop.report.plots import BASELINE_NAMES
from hotloop.report.tables import is_judged

_WIDTH, _HEIGHT, _LEFT = 900.0, 300.0, 58.0
_TOP, _BOTTOM, _BAND = 14.0, 244.0, 262.0
"""The band under the plot is for problems without a verified kernel."""
OUTCOMES = {
    "PASSED": ("o1", "passed the final tier"),
    "FAST_TIER_PASSED": ("o1", "passed the fast tier (the only one on a CPU)"),
    "NO_FINAL": ("o2", "passed the fast tier, no final verdict"),
    "FINAL": ("o3", "failed the final tier"),
    "NO_KERNEL": ("o4", "no kernel passed"),
    "OTHER": ("o5", "not loaded, not run or not readable"),
}
"""What a problem came to: class of the mark, and its words."""

FEW = 40
"""Problems that fit a panel; more have the whole width."""
NUMBER_FITS = 18.0
"""Width of a bar from which on its number stands in it."""


def speedups_plot(title: str, problems: Sequence[ProblemPage], baseline: str) -> Plot:
    """Return all problems sorted by speed-up on a log axis, with 95 % intervals.

    Failures stand in a band of their own under the axis; problems without the baseline are left
    out, and the note says how many.
    """
    counted = [p for p in problems if p.beside.get(baseline)]
    without = [p for p in counted if p.beside[baseline].state == "without"]
    solved = [p for p in counted if p.beside[baseline].state in ("measured", "unclaimed")]
    unsolved = [p for p in counted if p.beside[baseline].state == "unsolved"]
    if not solved:
        return Plot(title=title, picture=None, note="not measured: no kernel is verified yet")
    solved.sort(key=lambda p: -_speedup(p, baseline).ratio)
    ends = [e for p in solved for e in _ends(_speedup(p, baseline))]
    low, high = min(0.8, *ends), max(1.25, *ends)
    total = len(solved) + len(unsolved)
    is_wide = total > FEW
    width = _WIDTH if is_wide else svg.WIDTH
    frame = svg.Frame(
        x=svg.Scale(low=0.0, high=float(total), start=_LEFT, end=width - 10),
        y=svg.Scale(low=low / 1.08, high=high * 1.08, start=_BOTTOM, end=_TOP, is_log=True),
        width=width,
        height=_HEIGHT,
    )
    name = BASELINE_NAMES.get(baseline, baseline)
    axis = svg.Axis(f"{total} problems, fastest first")
    parts = [svg.axes(frame, axis, svg.Axis(f"over {name}", "x"), x_ticks=False)]
    at = frame.y(1.0)
    parts.append(svg.element("line", class_="one", x1=_LEFT, x2=frame.x.end, y1=at, y2=at))
    parts += [_mark(frame, n, p, baseline) for n, p in enumerate(solved)]
    parts += [_failure(frame, n, p) for n, p in enumerate(unsolved, len(solved))]
    note = f"{len(without)} problem(s) without this baseline are left out" if without else ""
    return Plot(
        title=title,
        picture=svg.drawing(frame, f"Speed-ups over {name}, {title}", parts),
        note=note,
        keys=_KEYS,
        is_wide=is_wide,
    )


_KEYS = (
    Key("win", f"win: lower end over {WIN_OVER:g}", is_mark=True),
    Key("even", "no win", is_mark=True),
    Key("unclaimed", "verified, ratio not claimed", is_mark=True),
    Key("failed", "no verified kernel: counts as 1.0", is_mark=True),
)


def _speedup(problem: ProblemPage, baseline: str) -> Speedup:
    found = problem.beside[baseline].speedup
    assert found is not None, "a verified kernel counts with a ratio"
    return found


def _ends(speedup: Speedup) -> tuple[float, ...]:
    """Return the ratio and those ends of its interval that a log axis can show."""
    ends = (speedup.ratio, speedup.low, speedup.high)
    return tuple(e for e in ends if 0 < e < math.inf)


def _mark(frame: svg.Frame, place: int, problem: ProblemPage, baseline: str) -> Markup:
    beside, found = problem.beside[baseline], _speedup(problem, baseline)
    is_claimed = beside.state == "measured"
    css = "unclaimed" if not is_claimed else "win" if found.is_win else "even"
    x, y = frame.place((place + 0.5, found.ratio))
    words = f"{problem.name} {problem.title}: {display.ratio(found.ratio)}"
    words += f" [{display.interval(found.low, found.high)}]" if is_claimed else ", not claimed"
    parts = [svg.element("title", words), svg.element("circle", cx=x, cy=y, r=3.0)]
    if is_claimed:
        low, high = frame.y(found.low), frame.y(found.high)
        parts.insert(1, svg.element("line", x1=x, x2=x, y1=low, y2=high))
    return _linked(problem, svg.element("g", *parts, class_=f"mark {css}"))


def _failure(frame: svg.Frame, place: int, problem: ProblemPage) -> Markup:
    x = frame.x(place + 0.5)
    words = f"{problem.name} {problem.title}: {problem.status}"
    cross = f"M{x - 3:.5g} {_BAND - 3}l6 6m0 -6l-6 6"
    shown = svg.element("g", svg.element("title", words), svg.element("path", d=cross),
                        class_="mark failed")  # fmt: skip
    return _linked(problem, shown)


def _linked(problem: ProblemPage, mark: Markup) -> Markup:
    # For the mouse alone: with the keyboard, the list of problems is the way there.
    return svg.element("a", mark, href=f"#p-{problem.key}", tabindex="-1")


def class_plot(by_class: Mapping[str, Any]) -> Plot:
    """Return a bar for each class of operators: how many of its problems came to what."""
    row, left, right = 22.0, 250.0, 700.0
    most = max(group["problems"] for group in by_class.values())
    scale = svg.Scale(low=0.0, high=float(most), start=left, end=right)
    height = row * len(by_class) + 12
    frame = svg.Frame(x=scale, y=scale, width=_WIDTH, height=height)
    parts: list[Markup] = []
    used: dict[str, str] = {}
    for n, (name, group) in enumerate(by_class.items()):
        y = 8 + n * row
        parts.append(svg.text(display.one_line(name, limit=40), (left - 8, y + 13), "end"))
        begin = 0
        for key, many in outcomes(group["statuses"]).items():
            css, words = OUTCOMES[key]
            used[css] = words
            x, end = scale(float(begin)), scale(float(begin + many))
            bar = svg.element("rect", svg.element("title", f"{many} {words}"), class_=f"bar {css}",
                              x=x, y=y, width=max(end - x - 1, 1.0), height=row - 6)  # fmt: skip
            parts.append(bar)
            if end - x > NUMBER_FITS:
                parts.append(svg.text(str(many), ((x + end) / 2, y + 12), "middle", class_="on"))
            begin += many
        parts.append(svg.text(_class_words(group), (scale(float(begin)) + 8, y + 13)))
    keys = tuple(Key(css, used[css], is_mark=True) for css in sorted(used))
    picture = svg.drawing(frame, "Problems by class of operator and outcome", parts)
    return Plot(title="By class of operator", picture=picture, keys=keys, is_wide=True)


def outcomes(statuses: Mapping[str, int]) -> dict[str, int]:
    """Return how many problems came to each outcome, in the order of `OUTCOMES`."""
    found = dict.fromkeys(OUTCOMES, 0)
    for status, many in statuses.items():
        key = "FINAL" if status.startswith("FINAL_") else status
        found[key if key in OUTCOMES else "OTHER"] += many
    return {key: many for key, many in found.items() if many}


def _class_words(group: Mapping[str, Any]) -> str:
    if group["correct"] is None:
        return f"{group['fast_tier_correct']} of {group['problems']} correct"
    if not is_judged(group):
        return "no final verdict yet"
    words = f"{group['correct']} of {group['problems']} correct"
    better = (group["speedup"] or {}).get("better_of_both", {})
    if better.get("best") is None:
        return words
    return f"{words}, {display.ratio(better['geometric_mean'])}"
