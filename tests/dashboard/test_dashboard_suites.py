"""The page of a suite: shown at once, whole when its journals are read."""

import re
import time
from types import SimpleNamespace

import pytest
from dashboard_runs import unsynced, write_run
from dashboard_suites import OUTCOMES, write_suite
from starlette.testclient import TestClient

from hotloop.cli.serve import make_dashboard
from hotloop.dashboard.app import Dashboard
from hotloop.dashboard.gate import Admission
from hotloop.dashboard.listing import scan
from hotloop.suite.figures_rows import read_row


@pytest.fixture
def site(tmp_path):
    """Return a dashboard of `tmp_path` and its client."""
    dashboard = make_dashboard(tmp_path)
    with TestClient(dashboard.app, base_url="http://127.0.0.1") as client:
        yield dashboard, client


def open_suite(site, root, **query):
    dashboard, client = site
    (place,) = scan(root).suites
    until = time.monotonic() + 20
    client.get(f"/suite/{place.id}")
    while not dashboard.site.suites.has_read(place.folder) and time.monotonic() < until:
        time.sleep(0.02)
    return client.get(f"/suite/{place.id}", params=query)


def rows_of(answer):
    return re.findall(r'<tr id="p-([\d-]+)"', answer.text)


def test_problems_stand_by_state_and_class_with_their_curves(tmp_path, site):
    write_suite(tmp_path / "s")
    answer = open_suite(site, tmp_path)
    for words in ("fast_p, level 1", "Solved, over time", "By class of operator", "done 2",
                  "open 1", "1.00 ms, 2.00x over compile", "19_ReLU"):  # fmt: skip
        assert words in answer.text, words
    assert rows_of(answer) == ["1-1", "1-2", "1-3"]
    assert rows_of(open_suite(site, tmp_path, state="open")) == ["1-3"]
    assert rows_of(open_suite(site, tmp_path, group="matmul")) == ["1-2"]
    assert rows_of(open_suite(site, tmp_path, text="relu")) == ["1-1"]
    (run_link,) = re.findall(r'href="(/run/[\w-]+)">1/1<', answer.text)
    assert site[1].get(run_link).status_code == 200


def test_its_runs_are_listed_with_it_and_not_beside_it(tmp_path, site):
    write_suite(tmp_path / "s")
    write_run(tmp_path / "alone", [1.0])
    open_suite(site, tmp_path)
    listed = site[1].get("/").text
    assert re.findall(r'<tr id="([rs])-(s|alone)-\w+"', listed) == [("s", "s"), ("r", "alone")]


def test_a_suite_of_a_cpu_shows_no_speed(tmp_path, site):
    write_suite(tmp_path / "s", device="cpu")
    answer = open_suite(site, tmp_path)
    words = re.sub(r"<[^>]*>", " ", answer.text).replace("there is no speed on this page", "")
    assert "Judged on a CPU" in words
    assert not re.search(r"speed|fast_p|\dx\b|\d ms\b", words)


def test_the_first_content_does_not_wait_for_the_journals(tmp_path, site):
    with unsynced():
        write_suite(tmp_path / "s", outcomes=OUTCOMES * 12)
    (place,) = scan(tmp_path).suites
    answer = site[1].get(f"/suite/{place.id}")
    assert "being read" in answer.text
    assert len(rows_of(answer)) == 36
    assert '<noscript><meta http-equiv="refresh"' in answer.text
    assert "being read" not in open_suite(site, tmp_path).text


def test_only_what_changed_is_read_again(tmp_path, site):
    write_suite(tmp_path / "s")
    open_suite(site, tmp_path)
    dashboard, _ = site
    (place,) = scan(tmp_path).suites
    before = dashboard.site.suites.get(place.folder)
    write_run(place.folder / "runs" / "1-3", [1.5])
    after = dashboard.site.suites.get(place.folder)
    names = [member.name for member in after.record.problems]
    same = [after.kept[name] is before.kept[name] for name in names]
    assert same == [True, True, False]


def test_a_damaged_suite_file_is_a_line_that_says_so(tmp_path, site):
    folder = write_suite(tmp_path / "s")
    (folder / "suite.json").write_text("{")
    answer = open_suite(site, tmp_path)
    assert answer.status_code == 503
    assert "suite.json is damaged" in answer.text
    open_suite(site, tmp_path)
    assert "cannot be read" in site[1].get("/").text


@pytest.mark.parametrize("is_read", [True, False])
def test_a_page_that_fails_is_one_line_here_and_there(tmp_path, capsys, is_read):
    write_suite(tmp_path / "s")

    def broken(run, member, trouble):
        row = read_row(run)
        return SimpleNamespace(row=row, page=None) if is_read else 1 / 0

    dashboard = Dashboard(tmp_path, Admission(host="127.0.0.1", token=None), broken)
    with TestClient(dashboard.app, base_url="http://127.0.0.1") as client:
        answer = open_suite((dashboard, client), tmp_path)
        assert answer.status_code == 500
        assert "cannot be shown" in answer.text
        assert "Traceback" not in answer.text
        assert client.get("/compare").status_code == 200
    lines = capsys.readouterr().err.splitlines()
    assert all(line.startswith("hotloop: /suite/") for line in lines)
    assert bool(lines) is is_read
