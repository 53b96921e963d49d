"""Plots and tables as files of their own: whole, in the right words, safe for a spreadsheet."""

import csv
import io
import re
from xml.etree import ElementTree

import pytest

from hotloop.report import svg
from hotloop.report.export import csv_text
from hotloop.report.plot import Key, Plot
from hotloop.report.plots import solve_rate_plot
from hotloop.report.raster import find_raster
from hotloop.report.standalone import figure_svg
from hotloop.report.tables import Link, Table

NAMESPACE = "{http://www.w3.org/2000/svg}"
KEYS = (Key("s1", "eager"), Key("failed", "failed", is_mark=True), Key("o2", "b & c", is_mark=True))


def plot(**changes):
    frame = svg.panel((0.0, 1.0), (0.0, 1.0))
    picture = svg.drawing(frame, "made", [svg.steps(frame, [(0.0, 0.5)], "s1")])
    given = {"title": "Made <up>", "picture": picture, "keys": KEYS, "note": "word " * 40}
    return Plot(**given | changes)


def test_a_plot_becomes_a_whole_file_with_title_legend_and_note():
    text = figure_svg(plot())
    root = ElementTree.fromstring(text.encode())
    assert root.tag == f"{NAMESPACE}svg"
    words = [element.text for element in root.iter(f"{NAMESPACE}text")]
    assert words[0] == "Made <up>"
    assert {"eager", "failed", "b & c"} <= set(words)
    assert " ".join(w for w in words if w and w.startswith("word")).split() == ["word"] * 40
    assert root.find(f".//{NAMESPACE}path[@class='line s1']") is not None
    inner = root.find(f"{NAMESPACE}svg")
    assert {"x", "y", "width", "height", "viewBox"} <= set(inner.attrib)


def test_nothing_is_left_to_a_page_or_to_another_host():
    text = figure_svg(plot())
    assert "var(" not in text
    assert not re.search(r"https?://(?!www\.w3\.org/)", text)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert "#0b62c4" in style
    assert "{" in style


def test_a_picture_that_was_not_measured_is_no_file():
    with pytest.raises(ValueError, match="has none"):
        figure_svg(plot(picture=None))
    empty = solve_rate_plot("time_s", {})
    assert empty.picture is None


def test_a_legend_that_is_too_long_goes_on_below():
    many = tuple(Key("s1", f"a rather long label, number {n}") for n in range(6))
    low = ElementTree.fromstring(figure_svg(plot(keys=KEYS, note="")).encode())
    high = ElementTree.fromstring(figure_svg(plot(keys=many, note="")).encode())
    assert float(high.attrib["height"]) > float(low.attrib["height"])
    labels = [e for e in high.iter(f"{NAMESPACE}text") if "label" in (e.text or "")]
    ends = [float(e.attrib["x"]) + 6 * len(e.text) for e in labels]
    assert max(ends) < float(high.attrib["width"])


@pytest.mark.parametrize(
    ("cell", "written"),
    [("=1+1", "'=1+1"), ("+cmd", "'+cmd"), ("@x", "'@x"), ("-x", "'-x"), ("-1.5", "-1.5"),
     ("+2e3", "+2e3"), ("plain", "plain"), ("1.50x", "1.50x"), ("", "")],
)  # fmt: skip
def test_a_cell_is_never_a_formula_and_a_number_stays_one(cell, written):
    rows = list(csv.reader(io.StringIO(csv_text(Table(title="t", head=("a",), rows=[(cell,)])))))
    assert rows[0] == ["a"]
    assert rows[1] == ([written] if written else [""])


def test_a_table_is_rfc_4180_with_links_as_text():
    table = Table(title="t", head=("a", "b"), rows=[('say "x", y', Link("1/19", "#p")), ("é", "")])
    text = csv_text(table)
    assert text == 'a,b\r\n"say ""x"", y",1/19\r\né,\r\n'
    assert list(csv.reader(io.StringIO(text)))[1] == ['say "x", y', "1/19"]


def test_a_picture_becomes_a_png_where_something_draws_it():
    raster = find_raster()
    if raster is None:
        pytest.skip("no rasteriser is installed")
    data = raster(figure_svg(plot()))
    assert data.startswith(b"\x89PNG\r\n")
    width = int.from_bytes(data[16:20], "big")
    assert width == 3 * round(float(re.search(r'width="(\d+)"', figure_svg(plot()))[1]))
