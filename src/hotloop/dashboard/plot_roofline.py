"""The roofline of a kernel and its baselines: what the device allows and what they reach.

Ceilings are those that the judge measured at set-up (`ProblemInfo.peaks`). FLOPs and bytes are
those that the problem asks for, each input and output moved once, so all implementations share one
intensity (Williams, Waterman and Patterson, Roofline, CACM 52(4), 2009).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from hotloop.core.problem import ProblemInfo
from hotloop.core.units import gbps, tflops
from hotloop.core.verdict import Performance, Verdict
from hotloop.report import display, svg
from hotloop.report.plot import Key, Plot

_WIDTH, _HEIGHT = 460.0, 320.0
_BEYOND = 8.0
"""The axes reach this many times beyond what has to be shown."""
TITLE = "Roofline"


def roofline_plot(verdict: Verdict, info: ProblemInfo | None) -> Plot:
    """Return the roofline; without FLOPs the bandwidths, and words where nothing was timed."""
    performance = verdict.performance
    if performance is None:
        why = "nothing is timed on a CPU" if verdict.device == "cpu" else "it was not timed"
        return Plot(title=TITLE, picture=None, note=f"{display.NOT_MEASURED}: {why}")
    peak_gbps = None if info is None else info.peaks.get("copy_gbps")
    peak_tflops = None if info is None else info.peaks.get("matmul_tflops")
    if info is None or not peak_gbps or info.io_bytes <= 0:
        why = "the device's ceilings were not measured"
        return Plot(title=TITLE, picture=None, note=f"{display.NOT_MEASURED}: {why}")
    points = [("this kernel", performance.latency_ms), *sorted(performance.baselines.items())]
    points = [(name, ms) for name, ms in points if ms > 0]
    flops = info.useful_flops or info.flops
    moved = info.useful_bytes or info.io_bytes
    if not flops or not peak_tflops:
        return _bandwidths(points, moved, peak_gbps)
    rates = [(name, tflops(flops, ms)) for name, ms in points]
    return _roofline(rates, flops / moved, (peak_gbps, peak_tflops), performance)


def _roofline(
    rates: Sequence[tuple[str, float]],
    intensity: float,
    peaks: tuple[float, float],
    performance: Performance,
) -> Plot:
    """Draw it on log axes; `intensity` is FLOPs a byte, `peaks` GB/s and TFLOP/s."""
    peak_gbps, peak_tflops = peaks
    ridge = peak_tflops * 1e3 / peak_gbps
    left, right = min(intensity, ridge) / _BEYOND, max(intensity, ridge) * _BEYOND
    low = min([rate for _, rate in rates] + [left * peak_gbps / 1e3]) / 1.5
    high = max(peak_tflops, *(rate for _, rate in rates)) * 2
    frame = svg.Frame(
        x=svg.Scale(low=left, high=right, start=62.0, end=_WIDTH - 14, is_log=True),
        y=svg.Scale(low=low, high=high, start=_HEIGHT - 46, end=12.0, is_log=True),
        width=_WIDTH,
        height=_HEIGHT,
    )
    words = svg.Axis("FLOPs a byte (log scale)")
    parts = [svg.axes(frame, words, svg.Axis("TFLOP/s"), x_ticks=False), *_decades(frame)]
    roof = [(left, left * peak_gbps / 1e3), (ridge, peak_tflops), (right, peak_tflops)]
    path = "L".join(f"{x:.5g} {y:.5g}" for x, y in map(frame.place, roof))
    parts.append(svg.element("path", class_="roof", d=f"M{path}"))
    parts.append(svg.text(f"{peak_tflops:.3g} TFLOP/s", (frame.x(right) - 4,
                          frame.y(peak_tflops) - 6), "end"))  # fmt: skip
    x = frame.x(intensity)
    parts.append(svg.element("line", class_="one", x1=x, x2=x, y1=frame.y.start, y2=frame.y.end))
    parts += [_point(x, frame.y(rate), name, f"{rate:.3g} TFLOP/s") for name, rate in rates]
    parts += _names([(name, frame.y(rate)) for name, rate in rates], x, frame)
    share = display.percent(performance.roofline_frac)
    note = (
        f"{share} of what the roof allows. Ceilings as measured on this device: "
        f"{peak_gbps:,.0f} GB/s copying, {peak_tflops:,.0f} TFLOP/s in matrix products."
    )
    if (performance.roofline_frac or 0.0) > 1.0:
        note = f"{note} {_OVER}"
    return Plot(title=TITLE, picture=svg.drawing(frame, TITLE, parts), note=note, keys=_KEYS)


_OVER = (
    "The roof is of products as PyTorch makes them here, and of every byte once: a kernel that is "
    "as exact on faster units, or finds its data in the cache, can be over it."
)

_KEYS = (Key("kernel", "this kernel", is_mark=True), Key("base", "baselines", is_mark=True))


def _decades(frame: svg.Frame) -> list[Markup]:
    """Return the ticks of the intensity, one for each power of ten."""
    first = math.ceil(math.log10(frame.x.low))
    last = math.floor(math.log10(frame.x.high))
    parts = []
    for value in (10.0**n for n in range(first, last + 1)):
        at, bottom = frame.x(value), frame.y.start
        parts.append(svg.element("line", class_="axis", x1=at, x2=at, y1=bottom, y2=bottom + 4))
        parts.append(svg.text(f"{value:,.6g}", (at, bottom + 18), "middle"))
    return parts


def _point(x: float, y: float, name: str, words: str) -> Markup:
    css = "kernel" if name == "this kernel" else "base"
    told = svg.element("title", f"{display.one_line(name, limit=40)}: {words}")
    return svg.element("g", svg.element("circle", told, cx=x, cy=y, r=5.0), class_=f"spot {css}")


def _names(points: Sequence[tuple[str, float]], x: float, frame: svg.Frame) -> list[Markup]:
    """Return the names beside their points, moved apart so that each can be read."""
    at_right = x < (frame.x.start + frame.x.end) / 2
    parts, last = [], 0.0
    for name, y in sorted(points, key=lambda point: point[1]):
        last = max(y + 4, last + 14)
        place = (x + 12 if at_right else x - 12, last)
        words = display.one_line(name, limit=24)
        parts.append(svg.text(words, place, "start" if at_right else "end"))
    return parts


def _bandwidths(points: Sequence[tuple[str, float]], io_bytes: int, peak_gbps: float) -> Plot:
    rates = [(name, gbps(io_bytes, ms)) for name, ms in points]
    row, left = 28.0, 150.0
    height = 20 + row * (len(rates) + 1)
    most = max(peak_gbps, *(rate for _, rate in rates))
    scale = svg.Scale(low=0.0, high=most, start=left, end=_WIDTH - 90)
    frame = svg.Frame(x=scale, y=scale, width=_WIDTH, height=height)
    parts = []
    for n, (name, rate) in enumerate([*rates, ("measured ceiling", peak_gbps)]):
        top = 8 + n * row
        css = {"this kernel": "kernel", "measured ceiling": "ceiling"}.get(name, "base")
        parts.append(svg.text(display.one_line(name, limit=22), (left - 8, top + 15), "end"))
        parts.append(svg.element("rect", class_=f"rate {css}", x=left, y=top + 2,
                                 width=max(scale(rate) - left, 1.0), height=row - 10))  # fmt: skip
        parts.append(svg.text(f"{rate:,.0f} GB/s", (scale(rate) + 8, top + 15)))
    title = f"{TITLE}: bandwidth"
    note = (
        "No FLOPs of matrix products are known here, so memory is the roof: bytes of inputs, "
        "parameters and outputs, once each, over the time, beside a copy on this device."
    )
    return Plot(title=title, picture=svg.drawing(frame, title, parts), note=note)
