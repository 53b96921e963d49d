"""Plots can be saved as SVG and PNG and tables as CSV, in a browser that has no net."""

import csv
import io
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from report_suites import Made, write_suite

from hotloop.cli.report import read_page
from hotloop.core.verdict import Status
from hotloop.report.html import render

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PNG = b"\x89PNG\r\n\x1a\n"
PROBLEMS = (
    Made(outcomes=(Status.COMPILE_ERROR, 1.0, 0.5), parents={2: (1,), 3: (2,)}, finals={3: 0.5}),
    Made(outcomes=(1.5,), finals={1: 1.5}, title='=HYPERLINK("http://evil")', level=2),
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs playwright: pip install 'hotloop[dev]'"
    )
    folder = tmp_path_factory.mktemp("report")
    path = folder / "report.html"
    path.write_text(render(read_page(write_suite(folder / "suite", PROBLEMS))))
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        opened = browser.new_page(accept_downloads=True)
        opened.wrong = []
        opened.on("console", lambda said: opened.wrong.append(said.text))
        opened.on("pageerror", lambda error: opened.wrong.append(str(error)))
        opened.on(
            "request",
            lambda asked: (
                asked.url.startswith(("file:", "data:", "blob:")) or opened.wrong.append(asked.url)
            ),
        )
        opened.goto(path.as_uri())
        yield opened
        browser.close()


def saved(page, button):
    with page.expect_download() as waiting:
        button.click()
    return waiting.value.suggested_filename, Path(waiting.value.path()).read_bytes()


def test_a_plot_stands_alone_as_svg(page):
    name, data = saved(page, page.get_by_role("button", name="SVG of").first)
    assert name.endswith(".svg")
    root = ET.fromstring(data)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    parts = list(root.iter())
    assert not any("class" in part.attrib for part in parts)
    lines = [part for part in parts if part.tag.endswith("path")]
    assert lines
    assert all(part.attrib["stroke"] for part in lines)  # its colours are in it
    assert page.wrong == []


def test_a_plot_is_saved_as_png(page):
    name, data = saved(page, page.get_by_role("button", name="PNG of").first)
    assert name.endswith(".png")
    assert data.startswith(PNG)
    width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    assert (width, height) == (3 * 420, 3 * 250)
    assert len(data) > 5000  # it is not blank
    assert page.wrong == []


def test_every_table_is_saved_as_csv_and_no_cell_is_a_formula(page):
    tables = page.locator(".scroll[aria-label] table").count()
    buttons = page.get_by_role("button", name="CSV of", include_hidden=True)
    assert buttons.count() == tables > 3
    name, data = saved(page, page.get_by_role("button", name="CSV of Correct"))
    assert name == "correct.csv"
    rows = list(csv.reader(io.StringIO(data.decode())))
    assert len({len(row) for row in rows}) == 1
    assert rows[0][1] == "problems"
    cells = [cell for row in rows for cell in row]
    assert not any(cell.startswith(("=", "@")) for cell in cells)
    assert page.wrong == []
