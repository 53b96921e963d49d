"""Best result so far over the budget's clock: the scaling curve of one run, or of two.

On a GPU a speed-up over the fastest baseline of the set-up, of the fast tier; on a CPU, where
nothing is timed, the static cost, which has no unit and is to be small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from hotloop.core.attempt import Attempt
from hotloop.dashboard.state import RunState
from hotloop.report import display, svg
from hotloop.report.metrics import speedup_over
from hotloop.report.plot import Key, Plot
from hotloop.report.plots import SHORT_S

LOG_FROM = 12.0
"""Values that are further apart than this are drawn on a log axis."""
WIDTH, HEIGHT = 640.0, 270.0
_ROOM_FRAC = 0.06
"""Of the range of values, above and below; twice below where failed attempts stand there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """What one run has reached, over what it has spent."""

    label: str
    passed: Sequence[tuple[float, float, int]]
    """Seconds of the budget, value, attempt; every attempt that has a value."""
    failed: Sequence[float]
    """Seconds of the budget."""
    final: tuple[float, float, float] | None = None
    """Ratio of the final tier and its 95 % interval, over the same baseline."""
    href: str = ""
    """Where its attempts are, without the number; empty: nowhere."""


def curve_of(state: RunState, label: str, href: str) -> Curve:
    """Return the curve of a run."""
    baseline = fastest_baseline(state)
    passed, failed = [], []
    for attempt in state.attempts:
        value = _value(attempt, state, baseline)
        if attempt.verdict is None or attempt.finished_s is None:
            continue
        if value is not None:
            passed.append((attempt.finished_s, value, attempt.id))
        elif not attempt.verdict.passed:
            failed.append(attempt.finished_s)
    return Curve(
        label=label, passed=passed, failed=failed, final=_final(state, baseline), href=href
    )


def fastest_baseline(state: RunState) -> str | None:
    """Return the name of the fastest baseline at set-up; None where there is none."""
    found = {} if state.info is None else state.info.baselines_ms
    return min(found, key=lambda name: found[name]) if found else None


def _value(attempt: Attempt, state: RunState, baseline: str | None) -> float | None:
    if attempt.objective is None or attempt.verdict is None:
        return None
    if not state.is_timed:
        return attempt.objective
    performance = attempt.verdict.performance
    if performance is None or performance.latency_ms <= 0:
        return None
    if baseline is None or state.info is None:
        return performance.latency_ms
    return state.info.baselines_ms[baseline] / performance.latency_ms


def _final(state: RunState, baseline: str | None) -> tuple[float, float, float] | None:
    final = state.final
    if baseline is None or final is None or final.performance is None:
        return None
    found = speedup_over(final.performance, baseline)
    return None if found is None else (found.ratio, found.low, found.high)


def progress_plot(states: Sequence[RunState], curves: Sequence[Curve]) -> Plot:
    """Return the curves; those of runs whose values cannot stand beside each other are refused."""
    kinds = {(s.is_timed, s.is_timed and fastest_baseline(s) is not None) for s in states}
    title = _title(states)
    if len(kinds) > 1:
        note = "not drawn: one run was timed and the other was not; their values are no match"
        return Plot(title=title, picture=None, note=note, is_wide=True)
    values = [value for curve in curves for _, value, _ in curve.passed]
    values += [end for curve in curves for end in curve.final or ()]
    if not values:
        return Plot(title=title, picture=None, note="no attempt has passed yet", is_wide=True)
    ((is_timed, is_ratio),) = kinds
    unit, drawn = _in_units(curves)
    frame = _frame(drawn, values, is_ratio=is_ratio)
    y_axis = svg.Axis("speed-up", "x") if is_ratio else svg.Axis("ms" if is_timed else "cost")
    parts = [svg.axes(frame, svg.Axis(f"{unit} of the budget"), y_axis)]
    if is_ratio:
        at = frame.y(1.0)
        parts.append(svg.element("line", class_="one", x1=frame.x.start, x2=frame.x.end, y1=at,
                                 y2=at))  # fmt: skip
    for n, curve in enumerate(drawn):
        parts += _drawn(frame, curve, f"s{n + 1}", is_ratio=is_ratio)
    return Plot(
        title=title,
        picture=svg.drawing(frame, title, parts),
        note=_note(states),
        keys=_keys(curves),
        is_wide=True,
    )


def _in_units(curves: Sequence[Curve]) -> tuple[str, list[Curve]]:
    """Return the unit of time that suits, and the curves in it."""
    most = max(at for c in curves for at in (0.0, *c.failed, *(p[0] for p in c.passed)))
    if most <= SHORT_S:
        return "seconds", list(curves)
    return "minutes", [
        replace(
            curve,
            passed=[(at / 60, value, number) for at, value, number in curve.passed],
            failed=[at / 60 for at in curve.failed],
        )
        for curve in curves
    ]


def _title(states: Sequence[RunState]) -> str:
    if not all(state.is_timed for state in states):
        return "Best static cost so far (CPU: nothing is timed; smaller is better)"
    names = {fastest_baseline(state) for state in states}
    if names == {None}:
        return "Best time so far, fast tier"
    told = ", ".join(display.one_line(name, limit=40) for name in sorted(n for n in names if n))
    return f"Best speed-up so far over {told}, fast tier"


def _note(states: Sequence[RunState]) -> str:
    if not all(state.is_timed for state in states):
        return "The static cost has no unit and predicts no time: it orders kernels that are right."
    return (
        "Baseline as measured at set-up. Ratios of the fast tier are no results: only the final "
        "tier's are, drawn at the right with their 95 % interval."
    )


def _frame(curves: Sequence[Curve], values: Sequence[float], *, is_ratio: bool) -> svg.Frame:
    ends = [at for c in curves for at in (*c.failed, *(p[0] for p in c.passed))]
    right = max(ends, default=1.0) or 1.0
    low, high = min(values), max(values)
    if is_ratio:
        low, high = min(low, 1.0), max(high, 1.0)
    is_log = low > 0 and high / low > LOG_FROM
    if is_log:
        room = (high / low) ** _ROOM_FRAC
        low, high = low / room**2, high * room
    else:
        room = (high - low or abs(high) or 1.0) * _ROOM_FRAC
        low, high = low - 2 * room, high + room
    return svg.Frame(
        x=svg.Scale(low=0.0, high=right * 1.03, start=svg.LEFT, end=WIDTH - 14),
        y=svg.Scale(low=low, high=high, start=HEIGHT - 46, end=12.0, is_log=is_log),
        width=WIDTH,
        height=HEIGHT,
    )


def _drawn(frame: svg.Frame, curve: Curve, css: str, *, is_ratio: bool) -> list[Markup]:
    best = best_so_far(curve.passed, is_ratio=is_ratio)
    parts = [svg.steps(frame, [(at, value) for at, value, _ in best], css)]
    if curve.passed:
        dots = "".join(f"M{frame.x(at):.5g} {frame.y(v):.5g}h0" for at, v, _ in curve.passed)
        parts.append(svg.element("path", class_=f"dots {css}", d=dots))
    for at, value, number in best:
        x, y = frame.place((at, value))
        words = f"{curve.label}, attempt {number}: {value:.3g}{'x' if is_ratio else ''}"
        mark = svg.element("circle", svg.element("title", words), cx=x, cy=y, r=4.0)
        if curve.href:
            mark = svg.element("a", mark, href=f"{curve.href}{number}", tabindex="-1")
        parts.append(svg.element("g", mark, class_=f"step {css}"))
    if curve.failed:
        y = frame.y.start - 7
        marks = "".join(f"M{frame.x(at) - 2.5:.5g} {y - 2.5:.5g}l5 5m0 -5l-5 5" for at in
                        curve.failed)  # fmt: skip
        parts.append(svg.element("path", class_="misses", d=marks))
    if curve.final is not None:
        ratio, low, high = curve.final
        x = frame.x.end
        words = f"{curve.label}, final tier: {display.ratio(ratio)}"
        bar = svg.element("line", x1=x, x2=x, y1=frame.y(low), y2=frame.y(high))
        dot = svg.element("circle", svg.element("title", words), cx=x, cy=frame.y(ratio), r=5.0)
        parts.append(svg.element("g", bar, dot, class_=f"final {css}"))
    return parts


def best_so_far(
    passed: Sequence[tuple[float, float, int]], *, is_ratio: bool
) -> list[tuple[float, float, int]]:
    """Return those of the attempts that were better than all before them, in order of time."""
    best = -math.inf if is_ratio else math.inf
    found = []
    for at, value, number in sorted(passed):
        if (value > best) if is_ratio else (value < best):
            best = value
            found.append((at, value, number))
    return found


def _keys(curves: Sequence[Curve]) -> tuple[Key, ...]:
    keys = [Key(f"s{n + 1}", f"{c.label}: best so far") for n, c in enumerate(curves)]
    if any(curve.failed for curve in curves):
        keys.append(Key("failed", "failed attempts", is_mark=True))
    return tuple(keys)
