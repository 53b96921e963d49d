"""Where an output is wrong, as a picture: the last two dimensions as a plane, the others as strips.

Drawn from the evidence of a verdict alone. The evidence names exactly which indices of each
dimension hold wrong elements, and a few of these elements with their values; which of the crossings
are wrong it does not say, only how many. The picture says no more than that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from hotloop.core.verdict import CaseResult, Evidence
from hotloop.prompts.numerics import NumericEvidence, Region, Sample, number, read_evidence
from hotloop.prompts.places import axis_names
from hotloop.report import display, svg
from hotloop.report.plot import Key, Plot

_LEFT, _TOP, _SIDE, _LEAST_SIDE, _WIDTH = 96.0, 26.0, 300.0, 56.0, 470.0
_STRIP, _STRIP_GAP = 12.0, 40.0
MOST_SPANS = 64
"""Spans of one dimension that are drawn one by one; more are drawn as one, lighter."""
_LEAST_PIXELS = 1.5
_NAMED = frozenset({"output", "shape", "total", "rule", "mismatches", "samples", "box"})


class Span(NamedTuple):
    """Adjacent indices of a dimension, from 0, both ends included."""

    first: int
    last: int


class Spans(NamedTuple):
    """The indices of a dimension that hold wrong elements."""

    spans: tuple[Span, ...]
    is_exact: bool
    """Whether every index in the spans holds one."""


def error_plot(evidence: Evidence, case: CaseResult | None, *, is_attention: bool) -> Plot | None:
    """Return the picture; None where the evidence is not about values at places."""
    read = read_evidence(evidence.details)
    if not read.shape or not _NAMED & set(evidence.details):
        return None
    samples = _samples(read, case)
    if not (read.box or samples):
        return None
    axis = axis_names(len(read.shape), is_attention=is_attention)
    shape = read.shape if len(read.shape) > 1 else (1, *read.shape)
    regions = [_spans_of(read.region, read.shape)]
    if len(read.shape) == 1:
        regions = [[Spans((Span(0, 0),), True), *regions[0]]] if regions[0] else [[]]
    height, width = _sides(shape)
    parts = [svg.element("rect", class_="plane", x=_LEFT, y=_TOP, width=width, height=height)]
    scales = _scales(shape, width, height)
    if regions[0]:
        parts.append(_region(read.diagonal, regions[0][-2:], scales))
    parts += [_sample(s, scales, n == 0) for n, s in enumerate(samples)]
    names = [axis(dim) for dim in range(len(read.shape))]
    names = names if len(read.shape) > 1 else ["", *names]
    parts += _labels(shape, names, scales)
    bottom = _TOP + height + 34
    for dim in range(len(shape) - 2):
        spans = regions[0][dim] if regions[0] else None
        parts.append(_strip(names[dim], shape[dim], spans, bottom))
        bottom += _STRIP_GAP
    frame = svg.Frame(x=scales[1], y=scales[0], width=_WIDTH, height=bottom)
    title = f"Where {display.one_line(read.output, limit=40)} is wrong"
    return Plot(
        title=f"{title}, shape {list(read.shape)}",
        picture=svg.drawing(frame, f"{title}: {_count(read)}", parts),
        note=_note(read, evidence.details),
        keys=_KEYS,
    )


_KEYS = (
    Key("region", "indices that hold wrong elements", is_mark=True),
    Key("high", "too large", is_mark=True),
    Key("low", "too small", is_mark=True),
    Key("nan", "NaN or Inf", is_mark=True),
)


def _samples(read: NumericEvidence, case: CaseResult | None) -> Sequence[Sample]:
    if read.samples or case is None or len(case.worst_index) != len(read.shape):
        return read.samples
    return (Sample(tuple(case.worst_index), "", ""),)


def _count(read: NumericEvidence) -> str:
    if not read.mismatches or not read.total:
        return "how many elements is not known"
    return f"{read.mismatches:,} of {read.total:,} elements are far off"


def _note(read: NumericEvidence, details: Mapping[str, Any]) -> str:
    words = [f"{_count(read)}."]
    density = details.get("density")
    if isinstance(density, float) and read.box:
        words.append(f"Within the marked box, {display.percent(density)} of the elements are.")
    if any(p.get("kind") == "some" for p in read.region.patterns):
        words.append("Lighter: some of these indices, without a pattern.")
    return " ".join(words)


def _spans_of(region: Region, shape: Sequence[int]) -> list[Spans]:
    if not region.box:
        return []
    patterns = {int(p["dim"]): p for p in region.patterns if isinstance(p.get("dim"), int)}
    return [
        spans_of(patterns.get(dim), Span(*region.box[dim]), size) for dim, size in enumerate(shape)
    ]


def spans_of(pattern: Mapping[str, Any] | None, box: Span, size: int) -> Spans:
    """Return the wrong indices of one dimension.

    Args:
        pattern: as `worker.wrong_region` describes it; None where all indices are hit.
        box: the first and the last wrong index.
        size: of the dimension.
    """
    kind = None if pattern is None else pattern.get("kind")
    whole = Spans((box,), kind in (None, "one", "range"))
    if pattern is None or kind not in ("every", "period"):
        return whole
    try:
        start = int(pattern["from"])
        step = int(pattern["step" if kind == "every" else "period"])
        last = start if kind == "every" else int(pattern["to"])
    except (KeyError, TypeError, ValueError):
        return Spans((box,), False)
    if step <= 0 or last < start or not 0 <= start < size or size // step > MOST_SPANS:
        return Spans((box,), False)
    spans = (Span(n + start, min(n + last, size - 1)) for n in range(0, size, step))
    return Spans(tuple(span for span in spans if span.first < size), True)


def _sides(shape: Sequence[int]) -> tuple[float, float]:
    """Return height and width of the plane; thin ones are widened so that they can be seen."""
    rows, columns = max(shape[-2], 1), max(shape[-1], 1)
    if rows >= columns:
        return _SIDE, max(_SIDE * math.sqrt(columns / rows), _LEAST_SIDE)
    return max(_SIDE * math.sqrt(rows / columns), _LEAST_SIDE), _SIDE


def _scales(shape: Sequence[int], width: float, height: float) -> tuple[svg.Scale, svg.Scale]:
    """Return the scales of the rows (downwards) and of the columns."""
    rows = svg.Scale(low=0.0, high=float(max(shape[-2], 1)), start=_TOP, end=_TOP + height)
    columns = svg.Scale(low=0.0, high=float(max(shape[-1], 1)), start=_LEFT, end=_LEFT + width)
    return rows, columns


def _region(
    diagonal: str | None, spans: Sequence[Spans], scales: tuple[svg.Scale, svg.Scale]
) -> Markup:
    if diagonal in ("above", "below"):
        return _triangle(diagonal, spans, scales)
    rows, columns = (_pieces(s, scale) for s, scale in zip(spans, scales, strict=True))
    css = "region" if all(s.is_exact for s in spans) else "region some"
    if diagonal == "on":
        return _triangle("on", spans, scales)
    return svg.element("path", class_=css, d="".join(
        f"M{x:.5g} {y:.5g}h{w:.5g}v{h:.5g}h{-w:.5g}z" for y, h in rows for x, w in columns
    ))  # fmt: skip


def _triangle(side: str, spans: Sequence[Spans], scales: tuple[svg.Scale, svg.Scale]) -> Markup:
    (top, bottom), (left, right) = (
        (scale(float(s.spans[0].first)), scale(float(s.spans[-1].last + 1)))
        for s, scale in zip(spans, scales, strict=True)
    )
    if side == "on":
        line = f"M{left:.5g} {top:.5g}L{right:.5g} {bottom:.5g}"
        return svg.element("path", class_="diagonal", d=line)
    corner = f"L{right:.5g} {top:.5g}" if side == "above" else f"L{left:.5g} {bottom:.5g}"
    shape = f"M{left:.5g} {top:.5g}{corner}L{right:.5g} {bottom:.5g}z"
    return svg.element("path", class_="region", d=shape)


def _pieces(spans: Spans, scale: svg.Scale) -> list[tuple[float, float]]:
    """Return start and length of each span in coordinates; none is too small to be seen."""
    pieces = []
    for span in spans.spans:
        start, end = scale(float(span.first)), scale(float(span.last + 1))
        length = max(end - start, _LEAST_PIXELS)
        pieces.append((min(start, scale.end - length), length))
    return pieces


def _sample(sample: Sample, scales: tuple[svg.Scale, svg.Scale], is_worst: bool) -> Markup:
    index = sample.index if len(sample.index) > 1 else (0, *sample.index)
    y, x = scales[0](index[-2] + 0.5), scales[1](index[-1] + 0.5)
    told = f"got {sample.got}, expected {sample.expected}" if sample.got else "the worst element"
    words = f"{list(sample.index)}: {told}{', the worst' if is_worst and sample.got else ''}"
    dot = svg.element("circle", svg.element("title", words), cx=x, cy=y, r=4.0)
    ring = [svg.element("circle", class_="ring", cx=x, cy=y, r=8.0)] if is_worst else []
    return svg.element("g", *ring, dot, class_=f"spot {_css(sample)}")


def _css(sample: Sample) -> str:
    got, expected = number(sample.got), number(sample.expected)
    if got is None or expected is None:
        return "nan"
    if not math.isfinite(got):
        return "nan"
    return "high" if got > expected else "low"


def _labels(
    shape: Sequence[int], names: Sequence[str], scales: tuple[svg.Scale, svg.Scale]
) -> Iterable[Markup]:
    rows, columns = scales
    yield svg.text("0", (columns.start, rows.start - 6), "start")
    yield svg.text(str(shape[-1] - 1), (columns.end, rows.start - 6), "end")
    yield svg.text(names[-1], ((columns.start + columns.end) / 2, rows.end + 18), "middle")
    if shape[-2] > 1:
        yield svg.text("0", (columns.start - 6, rows.start + 10), "end")
        yield svg.text(str(shape[-2] - 1), (columns.start - 6, rows.end), "end")
        middle = (rows.start + rows.end) / 2
        turned = f"rotate(-90 14 {middle:.5g})"
        yield svg.text(names[-2], (14, middle), "middle", transform=turned)


def _strip(name: str, size: int, spans: Spans | None, top: float) -> Markup:
    scale = svg.Scale(low=0.0, high=float(max(size, 1)), start=_LEFT, end=_LEFT + _SIDE)
    parts = [
        svg.text(f"{name}, {size} long", (_LEFT, top + 8)),
        svg.element("rect", class_="plane", x=_LEFT, y=top + 14, width=_SIDE, height=_STRIP),
    ]
    if spans is not None:
        css = "region" if spans.is_exact else "region some"
        shape = "".join(
            f"M{x:.5g} {top + 14:.5g}h{w:.5g}v{_STRIP:.5g}h{-w:.5g}z"
            for x, w in _pieces(spans, scale)
        )
        parts.append(svg.element("path", class_=css, d=shape))
    return Markup("").join(parts)
