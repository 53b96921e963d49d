"""A plot as an SVG file of its own: title, picture, legend and note, in the light colours.

The page draws with classes and colour variables; a file has no page, so the rules go into it with
the colours written out. What it says is text, so that it can be searched and edited.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

from markupsafe import Markup

from hotloop.report import svg
from hotloop.report.plot import Key, Plot

_TEMPLATES = Path(__file__).parent / "templates"
_MARGIN, _TITLE, _ROW, _SIZE = 12.0, 30.0, 18.0, 12
_CHARACTER = 6.6
"""Width of a character of 12 px, a little more than most have."""
_SYMBOL = 30.0
"""A legend's symbol and the space after it."""
_LEAST_WIDTH = 420.0
_FONT = '"Liberation Sans", "DejaVu Sans", Arial, sans-serif'


def figure_svg(plot: Plot) -> str:
    """Return the file's text.

    Raises:
        ValueError: the plot has no picture.
    """
    if plot.picture is None:
        raise ValueError(f"expected a plot with a picture, {plot.title!r} has none")
    picture = ElementTree.fromstring(str(plot.picture))
    _, _, wide, high = (float(n) for n in picture.attrib["viewBox"].split())
    width = max(wide, _LEAST_WIDTH) + 2 * _MARGIN
    place = {"x": _MARGIN, "y": _TITLE, "width": wide, "height": high}
    for name, value in place.items():
        picture.set(name, f"{value:g}")
    keys, below = _legend(plot.keys, _TITLE + high + _ROW, width)
    words, bottom = _note(plot.note, below, width)
    inside = [
        svg.element("style", Markup(_style())),
        svg.element("rect", class_="back", width=width, height=bottom),
        svg.text(plot.title, (_MARGIN, 20.0), class_="title"),
        Markup(ElementTree.tostring(picture, encoding="unicode")),
        *keys,
        *words,
    ]
    whole = svg.element(
        "svg", *inside, xmlns="http://www.w3.org/2000/svg", role="img", aria_label=plot.title,
        viewBox=f"0 0 {width:g} {bottom:g}", width=width, height=bottom,
    )  # fmt: skip
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{whole}\n'


def _legend(keys: Sequence[Key], top: float, width: float) -> tuple[list[Markup], float]:
    """Return the entries, as many to a row as fit, and where the next row begins."""
    parts: list[Markup] = []
    x, y = _MARGIN, top
    for key in keys:
        takes = _SYMBOL + _CHARACTER * len(key.label) + 14
        if x > _MARGIN and x + takes > width - _MARGIN:
            x, y = _MARGIN, y + _ROW
        symbol = svg.element("g", key.symbol, transform=f"translate({x:g} {y - 10:g})")
        parts += [symbol, svg.text(key.label, (x + _SYMBOL, y))]
        x += takes
    return parts, y + _ROW if keys else top


def _note(text: str, top: float, width: float) -> tuple[list[Markup], float]:
    lines = textwrap.wrap(text, int((width - 2 * _MARGIN) / _CHARACTER))
    parts = [svg.text(line, (_MARGIN, top + n * _ROW)) for n, line in enumerate(lines)]
    return parts, top + _ROW * len(lines)


@cache
def _style() -> str:
    """Return the rules of the page's pictures without variables, and those of a file."""
    page = (_TEMPLATES / "report.css").read_text(encoding="utf-8")
    colours = _colours(page.partition("@media")[0])
    rules = (_TEMPLATES / "plots.css").read_text(encoding="utf-8")
    own = (
        f"text {{ font-family: {_FONT}; font-size: {_SIZE}px; fill: var(--muted); }}",
        "text.title { font-size: 14px; font-weight: 600; fill: var(--text); }",
        "rect.back { fill: var(--back); }",
    )
    text = "\n".join((*own, rules))
    return re.sub(r"var\(--([\w-]+)\)", lambda found: colours[found[1]], text)


def _colours(rules: str) -> dict[str, str]:
    found: Iterable[tuple[str, str]] = re.findall(r"--([\w-]+): (#[0-9a-f]{6})", rules)
    return dict(found)
