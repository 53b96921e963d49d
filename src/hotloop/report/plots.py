"""Curves of a suite: fast_p, and what was reached over what was spent. Draws; makes no figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hotloop.report import svg
from hotloop.report.page import Beside, ProblemPage
from hotloop.report.plot import Key, Plot

BASELINE_NAMES = {
    "eager": "eager",
    "compile": "torch.compile",
    "better_of_both": "the better of both",
}
BETTER = "better_of_both"
P_UP_TO = 4.0
"""Where the axis of fast_p ends; what is faster still stands in the plot of all problems."""
AXES = {"time_s": "time", "calls": "model calls", "tokens": "tokens"}
"""Budgets that curves are drawn over, by the name that the figures have for them."""
SHORT_S = 180.0
"""An axis of time is in seconds up to here, then in minutes."""
_FAST_P_LINES = {BETTER: "s3 broad", "eager": "s1", "compile": "s2"}
"""Class of each baseline's line, as drawn: the broad one often lies under another."""
SERIES = 4
"""Colours of lines that the style sheet has."""


def fast_p_plot(title: str, problems: Sequence[ProblemPage]) -> Plot:
    """Return the share of problems with a kernel faster than p times each baseline, over p.

    Args:
        title: what the problems have in common.
        problems: solved or not; those that have no such baseline are left out, as in the figures.
    """
    by_name = {n: [p.beside[n] for p in problems if n in p.beside] for n in BASELINE_NAMES}
    judged = any(b.state in ("measured", "unclaimed") for group in by_name.values() for b in group)
    if not judged:
        return Plot(title=title, picture=None, note="not measured: no kernel is verified yet")
    frame = svg.panel((0.0, P_UP_TO), (0.0, 1.0))
    parts = [svg.axes(frame, svg.Axis("p, times the baseline"), svg.Axis("problems", " %", 100))]
    one = frame.x(1.0)
    parts.append(
        svg.element("line", class_="one", x1=one, x2=one, y1=frame.y.start, y2=frame.y.end)
    )
    parts += [svg.steps(frame, fast_p_points(by_name[n]), css) for n, css in _FAST_P_LINES.items()]
    keys = tuple(Key(css, f"over {BASELINE_NAMES[n]}") for n, css in _FAST_P_LINES.items())
    return Plot(title=title, picture=svg.drawing(frame, f"fast_p, {title}", parts), keys=keys)


def fast_p_points(beside: Sequence[Beside]) -> list[list[float]]:
    """Return [p, share of problems whose claimed ratio is over p], from p over 0 on."""
    counted = [b for b in beside if b.state != "without"]
    ratios = sorted(b.speedup.ratio for b in counted if b.speedup and b.state == "measured")
    if not counted:
        return []
    points = [[0.0, len(ratios) / len(counted)]]
    for n, ratio in enumerate(ratios, 1):
        if ratio < P_UP_TO:
            points.append([ratio, (len(ratios) - n) / len(counted)])
    return points


def solve_rate_plot(axis: str, curves: Mapping[str, Any]) -> Plot:
    """Return the share of solved problems over one kind of budget, a line for each level.

    Args:
        axis: a key of `AXES`.
        curves: by level, as the figures have them for that axis.
    """
    title = f"Solved, over {AXES[axis]}"
    lines = []
    for n, (level, found) in enumerate(curves.items()):
        colour = f"s{n % SERIES + 1}"
        lines.append((found.get("solve_rate"), colour, f"level {level}"))
        fast = found.get("fast_tier_solve_rate")
        lines.append((fast, f"{colour} dashed", f"level {level}, fast tier"))
    return _over_budget(title, axis, lines, _unknown(curves))


def speedup_plot(axis: str, curves: Mapping[str, Any]) -> Plot:
    """Return the geometric mean of the best ratio so far, failures as 1.0; as `solve_rate_plot`."""
    title = f"Best speed-up so far, over {AXES[axis]}"
    lines = []
    for n, (level, found) in enumerate(curves.items()):
        colour = f"s{n % SERIES + 1}"
        final = (found.get("speedup") or {}).get(BETTER)
        lines.append((final, colour, f"level {level}"))
        fast = found.get("fast_tier_speedup")
        lines.append((fast, f"{colour} dashed", f"level {level}, fast tier"))
    return _over_budget(title, axis, lines, _unknown(curves))


Line = tuple[list[list[float]] | None, str, str]
"""Points, None where it is not known what was spent; class; label."""


def _over_budget(title: str, axis: str, lines: Sequence[Line], note: str) -> Plot:
    is_rate = title.startswith("Solved")
    start = 0.0 if is_rate else 1.0
    drawn = [
        (points, css, label)
        for points, css, label in lines
        if points and any(value != start for _, value in points)
    ]
    if not drawn:
        return Plot(title=title, picture=None, note=note or "not measured: no kernel is found yet")
    most = max(points[-1][0] for points, _, _ in drawn)
    if most == 0:
        return Plot(title=title, picture=None, note=f"none: no {AXES[axis]} spent")
    top = 1.0 if is_rate else max(p[1] for points, _, _ in drawn for p in points)
    low = 0.0 if is_rate else min(1.0, *(p[1] for points, _, _ in drawn for p in points))
    factor, unit = _unit(axis, most)
    right = most * factor * 1.04
    frame = svg.panel((0.0, right), (low, 1.0 if is_rate else top * 1.05))
    y = svg.Axis("problems", " %", 100) if is_rate else svg.Axis("geometric mean", "x")
    parts = [svg.axes(frame, svg.Axis(unit), y)]
    parts += [
        svg.steps(frame, [[at * factor, value] for at, value in points], css)
        for points, css, _ in drawn
    ]
    keys = tuple(Key(css, label) for _, css, label in drawn)
    return Plot(title=title, picture=svg.drawing(frame, title, parts), note=note, keys=keys)


def _unit(axis: str, most: float) -> tuple[float, str]:
    """Return what a value is multiplied with before it is drawn, and the words of the axis."""
    if axis == "time_s":
        return (1.0, "seconds") if most <= SHORT_S else (1 / 60, "minutes")
    if axis == "tokens" and most >= 10_000:
        return 1e-3, "thousand tokens"
    return 1.0, AXES[axis]


def _unknown(curves: Mapping[str, Any]) -> str:
    names = [name for found in curves.values() for name in found.get("unknown", ())]
    if not names:
        return ""
    return f"for {len(names)} problem(s) it is not known what was spent; they count as not solved"
