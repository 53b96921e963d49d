"""Colours that can be read in light and dark, and assets that are in the package."""

import re
import tomllib
from pathlib import Path

import pytest

import hotloop.report

ROOT = Path(__file__).parents[2]
TEMPLATES = Path(hotloop.report.__file__).parent / "templates"
CSS = (TEMPLATES / "report.css").read_text(encoding="utf-8")
LIGHT, DARK = CSS.split("@media (prefers-color-scheme: dark)")[:2]
BACKS = ("back", "panel")
TEXTS = ("text", "muted", "link", "s2", "s3", "s4")
"""The last three colour words of a source."""
LABELS = ("good", "bad", "warn")
GRAPHICS = ("s1", "s2", "s3", "s4", "o1", "o2", "o3", "o4", "o5")
FOR_TEXT, FOR_GRAPHICS = 4.5, 3.0
"""WCAG 2.2, success criteria 1.4.3 and 1.4.11, level AA."""


def colours(css):
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", css))


def luminance(colour):
    """WCAG 2.2, relative luminance."""
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("css", [LIGHT, DARK], ids=["light", "dark"])
def test_contrast_is_aa(css):
    found = colours(css)
    pairs = [(text, back, FOR_TEXT) for text in TEXTS for back in BACKS]
    pairs += [(label, back, FOR_TEXT) for label in LABELS for back in (f"{label}-back", *BACKS)]
    pairs += [("text", back, FOR_TEXT) for back in ("good-back", "plain-back")]
    pairs += [(mark, "back", FOR_GRAPHICS) for mark in GRAPHICS]
    pairs += [("back", bar, FOR_TEXT) for bar in ("o1", "o2", "o3", "o4", "o5")]
    weak = {
        f"{one} on {other}": round(contrast(found[one], found[other]), 2)
        for one, other, least in pairs
        if contrast(found[one], found[other]) < least
    }
    assert weak == {}


def test_the_measure_of_contrast_knows_black_and_white():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") < FOR_TEXT < contrast("#767676", "#ffffff")


def test_the_style_sheet_fetches_nothing_and_ends_no_element():
    for name in ("report.css", "plots.css", "report.js"):
        text = (TEMPLATES / name).read_text(encoding="utf-8")
        assert not re.search(r"url\(|@import|https?:|</", text)


def test_the_wheel_takes_the_templates():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    assert build["targets"]["wheel"] == {"packages": ["src/hotloop"]}
    assert TEMPLATES.is_relative_to(ROOT / "src" / "hotloop")
    ignored = (ROOT / ".gitignore").read_text().split()
    assert not {"*.css", "*.js", "*.jinja", "templates/"} & set(ignored)
