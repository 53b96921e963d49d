"""The report of a single run: its pictures in the page, and each of them as a file."""

import csv
import json
import sys
from xml.etree import ElementTree

import pytest
from dashboard_runs import write_run

from hotloop.cli.main import main
from hotloop.cli.report import read_page
from hotloop.core.verdict import Status

ATTEMPTS = [2.0, Status.INCORRECT_NUMERICAL, 1.0, None, 0.5]
PLOTS = {"best-speed-up-so-far-over-compile-fast-tier", "budget-left", "lineage-of-the-attempts",
         "time-of-one-call", "roofline"}  # fmt: skip


@pytest.fixture
def run(tmp_path):
    return write_run(tmp_path / "r", ATTEMPTS, finals={5: 0.52}, parents={3: (1,), 5: (3,)})


@pytest.fixture
def no_raster(monkeypatch):
    monkeypatch.setitem(sys.modules, "resvg_py", None)


def report(tmp_path, run, *words):
    return main(["report", str(run), "--out", str(tmp_path / "r.html"), *map(str, words)])


def test_the_page_has_the_pictures_of_the_dashboard(run, tmp_path):
    assert report(tmp_path, run) == 0
    html = (tmp_path / "r.html").read_text()
    for title in ("Best speed-up so far over compile, fast tier", "Budget left",
                  "Lineage of the attempts", "Time of one call", "Roofline"):  # fmt: skip
        assert f"<figcaption>{title}</figcaption>" in html, title
    assert html.count("<figure") == 5
    assert 'tabindex="-1"' not in html, "no mark leads to a page that is not there"


def test_where_nothing_passed_the_last_wrong_one_is_drawn(tmp_path):
    run = write_run(tmp_path / "r", [Status.TIMEOUT, Status.INCORRECT_NUMERICAL])
    titles = [plot.title for plot in read_page(run).problems[0].plots]
    assert "Roofline" not in titles
    assert any("wrong" in title.lower() for title in titles), titles


def test_a_run_of_a_cpu_has_no_picture_of_time_and_one_without_attempts_none(tmp_path):
    on_cpu = write_run(tmp_path / "cpu", [5.0], device="cpu")
    plots = read_page(on_cpu).problems[0].plots
    assert not {"Time of one call", "Roofline"} & {plot.title for plot in plots}
    assert "speed-up" not in " ".join(str(plot.picture) for plot in plots)
    assert read_page(write_run(tmp_path / "new", [], ended=False)).problems[0].plots == ()


def test_each_plot_and_table_becomes_a_file(run, tmp_path, no_raster, capsys):
    assert report(tmp_path, run, "--figures", tmp_path / "f") == 0
    said = capsys.readouterr().out.splitlines()
    assert said[1] == f"{tmp_path / 'f'}: 5 SVG, 2 CSV"
    assert said[2].startswith("no PNG: nothing here draws it; pip install 'hotloop[figures]'")
    files = {path.name for path in (tmp_path / "f").iterdir()}
    assert files == {f"{name}.svg" for name in PLOTS} | {"attempts.csv", "timing.csv"}
    for name in PLOTS:
        ElementTree.parse(tmp_path / "f" / f"{name}.svg")
    with open(tmp_path / "f" / "attempts.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert sorted(int(row["attempt"]) for row in rows) == [1, 2, 3, 4, 5]
    assert {row["attempt"]: row["status"] for row in rows}["4"] == "never judged"


def test_json_counts_the_files(run, tmp_path, no_raster, capsys):
    assert report(tmp_path, run, "--figures", tmp_path / "f", "--json") == 0
    found = json.loads(capsys.readouterr().out)["figures"]
    assert found == {"folder": str(tmp_path / "f"), "svg": 5, "png": None, "csv": 2}


def test_where_a_rasteriser_is_there_each_plot_is_a_png_too(run, tmp_path, capsys):
    pytest.importorskip("resvg_py")
    assert report(tmp_path, run, "--figures", tmp_path / "f") == 0
    assert "5 SVG, 5 PNG, 2 CSV" in capsys.readouterr().out
    pictures = sorted((tmp_path / "f").glob("*.png"))
    assert {path.stem for path in pictures} == PLOTS
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)


def test_a_place_that_cannot_be_a_folder_is_one_line(run, tmp_path, capsys):
    (tmp_path / "file").touch()
    for place, told in ((tmp_path / "file", "is a file; name a folder"),
                        (tmp_path / "a" / "b", "there is no folder")):  # fmt: skip
        assert report(tmp_path, run, "--figures", place) == 2
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert told in line
    assert not (tmp_path / "r.html").exists(), "refused before anything is written"


def test_names_of_foreign_runs_stay_in_the_folder(tmp_path, no_raster):
    run = write_run(tmp_path / "r", [1.0], name="../../evil <b>")
    assert report(tmp_path, run, "--figures", tmp_path / "f") == 0
    assert all(path.parent == tmp_path / "f" for path in (tmp_path / "f").rglob("*"))
