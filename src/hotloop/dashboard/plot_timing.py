"""How long a call takes: median and quartiles beside the baselines and the run's other kernels.

The journal keeps median, interquartile range and number of samples, not the samples. The picture
exists on a GPU only, as times do.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from hotloop.core.units import format_ms
from hotloop.core.verdict import Performance, Verdict
from hotloop.dashboard.state import RunState
from hotloop.report import display, svg
from hotloop.report.plot import Plot

_WIDTH, _LEFT, _ROW, _TOP = 480.0, 120.0, 30.0, 12.0
LOG_FROM = 8.0


def timing_plot(verdict: Verdict, state: RunState) -> Plot:
    """Return the picture of one verdict's times."""
    title = "Time of one call"
    performance = verdict.performance
    if performance is None:
        why = "nothing is timed on a CPU" if not state.is_timed else "only kernels that pass are"
        return Plot(title=title, picture=None, note=f"{display.NOT_MEASURED}: {why}")
    others = _others(state)
    baselines = sorted(performance.baselines.items(), key=lambda item: item[1])
    half = performance.spread_ms / 2
    values = [performance.latency_ms - half, performance.latency_ms + half, *others]
    values += [ms for _, ms in baselines]
    frame = _frame([v for v in values if v > 0], rows=1 + bool(others) + len(baselines))
    parts = [_axis(frame)]
    top = _TOP
    if others:
        parts.append(_strip(frame, top, others))
        top += _ROW
    parts.append(_box(frame, top, performance))
    for name, ms in baselines:
        top += _ROW
        parts.append(_bar(frame, top, name, ms))
    told = (
        f"Median and interquartile range of {performance.samples} samples by {performance.timer}, "
        f"L2 {performance.l2}, {verdict.tier.value} tier. The samples themselves are not kept."
    )
    return Plot(title=title, picture=svg.drawing(frame, title, parts), note=told)


def _others(state: RunState) -> list[float]:
    verdicts = [a.verdict for a in state.attempts if a.verdict is not None]
    return [v.performance.latency_ms for v in verdicts if v.performance is not None]


def _frame(values: Sequence[float], rows: int) -> svg.Frame:
    low, high = min(values), max(values)
    is_log = high / low > LOG_FROM
    low, high = (low / 1.15, high * 1.15) if is_log else (0.0, high * 1.08)
    height = _TOP + _ROW * rows + 44
    return svg.Frame(
        x=svg.Scale(low=low, high=high, start=_LEFT, end=_WIDTH - 70, is_log=is_log),
        y=svg.Scale(low=0.0, high=1.0, start=height - 40, end=_TOP),
        width=_WIDTH,
        height=height,
    )


def _axis(frame: svg.Frame) -> Markup:
    bottom = frame.y.start
    parts = []
    for value in frame.x.ticks():
        at = frame.x(value)
        parts.append(svg.element("line", class_="grid", x1=at, x2=at, y1=_TOP, y2=bottom))
        parts.append(svg.text(f"{value:.3g}", (at, bottom + 16), "middle"))
    words = "ms, log scale" if frame.x.is_log else "ms"
    middle = (frame.x.start + frame.x.end) / 2
    return Markup("").join([*parts, svg.text(words, (middle, frame.height - 6), "middle")])


def _label(words: str, top: float) -> Markup:
    return svg.text(display.one_line(words, limit=17), (_LEFT - 10, top + 19), "end")


def _strip(frame: svg.Frame, top: float, values: Sequence[float]) -> Markup:
    y = top + _ROW / 2
    dots = "".join(f"M{frame.x(value):.5g} {y:.5g}h0" for value in values)
    picture = svg.element("path", class_="dots s4", d=dots)
    return _label(f"all {len(values)} that passed", top) + picture


def _box(frame: svg.Frame, top: float, performance: Performance) -> Markup:
    half = performance.spread_ms / 2
    middle = frame.x(performance.latency_ms)
    left, right = frame.x(performance.latency_ms - half), frame.x(performance.latency_ms + half)
    words = f"{format_ms(performance.latency_ms)}, spread {format_ms(performance.spread_ms)}"
    box = svg.element(
        "rect", svg.element("title", words), class_="box", x=left, y=top + 6,
        width=max(right - left, 2.0), height=_ROW - 12,
    )  # fmt: skip
    line = svg.element("line", class_="median", x1=middle, x2=middle, y1=top + 3, y2=top + 27)
    value = svg.text(format_ms(performance.latency_ms), (max(right, middle) + 8, top + 19))
    return _label("this kernel", top) + box + line + value


def _bar(frame: svg.Frame, top: float, name: str, ms: float) -> Markup:
    at = frame.x(ms)
    mark = svg.element("line", class_="baseline", x1=at, x2=at, y1=top + 5, y2=top + 25)
    return _label(name, top) + mark + svg.text(format_ms(ms), (at + 8, top + 19))
