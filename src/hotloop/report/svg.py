"""The little SVG that plots need: scales, axes, lines, marks. Text is escaped, colours are classes.

Nothing here sets a style: the page's one style sheet does, so that a plot follows light and dark
and the page needs no inline styles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

WIDTH, HEIGHT = 420.0, 250.0
LEFT = 70.0
"""Left of the vertical axis: numbers of six characters and the turned title fit."""
"""Of a panel, in its own units; the page scales it."""
Point = tuple[float, float]


def element(name: str, *inside: str | Markup, **attributes: object) -> Markup:
    """Return an element; `class_` stands for `class`, `_` for `-`, None leaves one out."""
    words = [
        f' {key.rstrip("_").replace("_", "-")}="{_text(value)}"'
        for key, value in attributes.items()
        if value is not None
    ]
    body = "".join(escape(part) for part in inside)
    return Markup(f"<{name}{''.join(words)}>{body}</{name}>")


def _text(value: object) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(escape(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """From a range of values to a range of coordinates."""

    low: float
    high: float
    start: float
    """Coordinate of `low`."""
    end: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        """Return the coordinate of a value; what lies outside is put at the edge."""
        held = min(max(value, self.low), self.high)
        if self.is_log:
            share = math.log(held / self.low) / math.log(self.high / self.low)
        else:
            share = (held - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Return round values within the range, four to eight or so."""
        return _log_ticks(self.low, self.high) if self.is_log else _ticks(self.low, self.high)


def _ticks(low: float, high: float) -> list[float]:
    raw = (high - low) / 4
    size = 10 ** math.floor(math.log10(raw))
    step = next(size * n for n in (1, 2, 2.5, 5, 10) if size * n >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [n * step for n in range(first, last + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for parts in ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        found = [n * 10.0**d for d in decades for n in parts if low <= n * 10.0**d <= high]
        if len(found) <= 9:
            break
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The area of a plot."""

    x: Scale
    y: Scale
    width: float = WIDTH
    height: float = HEIGHT

    def place(self, point: Point) -> Point:
        """Return the coordinates of a point."""
        return self.x(point[0]), self.y(point[1])


def panel(x: tuple[float, float], y: tuple[float, float]) -> Frame:
    """Return a panel's frame over two ranges of values; an empty range is widened."""
    x_high, y_high = (high if high > low else low + 1 for low, high in (x, y))
    return Frame(
        x=Scale(low=x[0], high=x_high, start=LEFT, end=WIDTH - 14),
        y=Scale(low=y[0], high=y_high, start=HEIGHT - 46, end=12.0),
    )


@dataclass(frozen=True, slots=True)
class Axis:
    """What stands along an axis."""

    title: str
    unit: str = ""
    """Follows each number."""
    factor: float = 1.0
    """What a value is multiplied with before it is written."""

    def label(self, value: float) -> str:
        """Return a tick's text."""
        return f"{value * self.factor:,.4g}{self.unit}"


def axes(frame: Frame, x: Axis, y: Axis, *, x_ticks: bool = True) -> Markup:
    """Return grid, ticks and titles."""
    left, right = frame.x.start, frame.x.end
    bottom, top = frame.y.start, frame.y.end
    parts = []
    for value in frame.y.ticks():
        at = frame.y(value)
        parts.append(element("line", class_="grid", x1=left, x2=right, y1=at, y2=at))
        parts.append(text(y.label(value), (left - 6, at + 4), "end"))
    for value in frame.x.ticks() if x_ticks else ():
        at = frame.x(value)
        parts.append(element("line", class_="axis", x1=at, x2=at, y1=bottom, y2=bottom + 4))
        parts.append(text(x.label(value), (at, bottom + 18), "middle"))
    parts.append(
        element("path", class_="axis", d=f"M{left:.5g} {top:.5g}V{bottom:.5g}H{right:.5g}")
    )
    parts.append(text(x.title, ((left + right) / 2, frame.height - 6), "middle"))
    turned = f"rotate(-90 13 {(top + bottom) / 2:.5g})"
    middle = (13, (top + bottom) / 2)
    parts.append(text(y.title, middle, "middle", transform=turned, class_="upright"))
    return Markup("").join(parts)


def text(words: str, at: Point, anchor: str = "start", **more: object) -> Markup:
    """Return a text at a place; `anchor` is `start`, `middle` or `end`."""
    return element("text", words, x=at[0], y=at[1], text_anchor=anchor, **more)


def steps(frame: Frame, points: Sequence[Sequence[float]], css: str) -> Markup:
    """Return a step function: each value holds until the next point, the last to the edge."""
    if not points:
        return Markup("")
    placed = [frame.place((p[0], p[1])) for p in points]
    path = f"M{placed[0][0]:.5g} {placed[0][1]:.5g}"
    path += "".join(f"H{x:.5g}V{y:.5g}" for x, y in placed[1:])
    return element("path", class_=f"line {css}", d=f"{path}H{frame.x.end:.5g}")


def drawing(frame: Frame, title: str, parts: Iterable[Markup]) -> Markup:
    """Return a whole picture; `title` is what a screen reader says."""
    return element(
        "svg",
        Markup("").join(parts),
        viewBox=f"0 0 {frame.width:g} {frame.height:g}",
        role="img",
        aria_label=title,
    )
