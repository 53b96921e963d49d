"""`hotloop report`: suites and runs, the line that reproduces, and one line for bad input."""

import json
import re
import shlex
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from hotloop.cli.main import main
from hotloop.cli.report import read_page
from hotloop.store.sqlite import JOURNAL_FILE
from hotloop.suite.command import bench_command
from hotloop.suite.folder import SUITE_FILE, read_suite

PROBLEM = """\
import torch

N = {n}


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.rand(N, 8)]


def get_init_inputs():
    return []
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A suite of three problems that wait for a judge, in `s`."""
    for level, number in ((1, 1), (1, 2), (2, 7)):
        folder = tmp_path / "data" / f"level{level}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}_Relu.py").write_text(PROBLEM.format(n=10 * level + number))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOTLOOP_KERNELBENCH", str(tmp_path / "data"))
    words = ["--model", "dir:answers", "--device", "cpu", "--max-calls", "1", "--set", "N=3"]
    assert main(["bench", "kernelbench", *words, *ELSEWHERE, "--out", "s"]) == 4
    return tmp_path


ELSEWHERE = ("--judge", "bundle", "--no-wait")


def test_a_suite_becomes_one_file(place, capsys):
    assert main(["report", "s", "--out", "r.html"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"r\.html: 3 problem\(s\), 3 not finished, [1-9]\d* kB", said)
    html = (place / "r.html").read_text()
    assert html.startswith("<!doctype html>")
    assert [p.name for p in place.iterdir() if p.name.startswith((".r", "r"))] == ["r.html"]


def test_the_default_file_and_json(place, capsys):
    capsys.readouterr()
    assert main(["report", "s", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["out"] == "report.html"
    assert record["size_bytes"] == (place / "report.html").stat().st_size
    assert (record["problems"], record["open"], record["unreadable"]) == (3, 3, [])


def test_the_line_that_reproduces_a_suite_goes_on_with_it(place):
    record = read_suite(place / "s")
    page = read_page(place / "s")
    words = shlex.split(page.command)
    assert words[:3] == ["hotloop", "bench", "kernelbench"]
    assert "1/1-2,2/7" in words
    assert page.command_note == ""
    assert main([*words[1:], "--no-wait"]) == 4, "the same suite, not another one"
    assert read_page(place / "s").command == page.command
    again = read_suite(place / "s")
    assert (again.options, again.limits, again.problems) == (
        record.options, record.limits, record.problems
    )  # fmt: skip
    assert main([*words[1:], *ELSEWHERE, "--seed", "5"]) == 2, "which another seed would be"


def test_a_single_run_has_its_one_problem_open(place):
    assert main(["report", "s/runs/1-2", "--out", "run.html"]) == 0
    html = (place / "run.html").read_text()
    assert re.search(r'<details class="problem" id="p-1-2"[^>]* open>', html)
    assert "kernelbench/1/2" in html
    assert "hotloop bench kernelbench --problems 1/1-2,2/7" in html, "which alone goes on with it"
    assert 'id="figures-1"' not in html
    assert "This run is not finished" in html


def test_reading_changes_nothing(place):
    def state():
        files = (p for p in (place / "s").rglob("*") if p.is_file())
        return {str(p): p.read_bytes() for p in files if not p.name.endswith(("-shm", "-wal"))}

    before = state()
    assert main(["report", "s"]) == 0
    assert state() == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "nowhere holds neither a suite nor a run; give the --out of"),
        (["data"], "data holds neither a suite nor a run"),
        (["s", "--out", "data"], "--out data is a folder; name a file in it"),
        (["s", "--out", "no/r.html"], "there is no folder no; make it first"),
        (["s", "--figures", "no/f"], "--figures no/f: there is no folder no; make it first"),
    ],
)
def test_bad_input_is_one_line(place, capsys, words, said):
    capsys.readouterr()
    assert main(["report", *words]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert said in lines[0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text[:40], "is damaged"),
        (lambda text: text.replace('"max_calls": 1', '"max_calls": "x"'), "are not those of"),
        (
            lambda text: text.replace('"schema_version": 1', '"schema_version": 9'),
            "a newer hotloop",
        ),
    ],
)
def test_a_suite_file_that_cannot_be_read_is_one_line(place, capsys, change, said):
    path = place / "s" / SUITE_FILE
    path.write_text(change(path.read_text()))
    capsys.readouterr()
    assert main(["report", "s"]) == 2
    assert said in capsys.readouterr().err
    assert not (place / "report.html").exists()


def test_a_run_of_another_shape_is_one_line(place, capsys):
    run = place / "s" / "runs" / "1-2"
    with closing(sqlite3.connect(run / JOURNAL_FILE)) as connection, connection:
        spec = ("continued", '{"spec": {"of": "another version"}}', 0.0)
        connection.execute("INSERT INTO events (kind, payload, written_at) VALUES (?, ?, ?)", spec)
    capsys.readouterr()
    assert main(["report", str(run)]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "its journal cannot be read" in line
    assert main(["report", "s"]) == 0, "in a suite it is a row that says so"
    assert "unreadable" in (place / "report.html").read_text()


def test_the_line_that_reproduces_names_examples_and_what_is_held_out(place):
    record = read_suite(place / "s")
    options = {"held_out": ["kernelbench/1/2", "kernelbench/2/40"], "examples": ["/runs a"]}
    more = replace(record, options={**record.options, **options})
    words = shlex.split(bench_command(more, place))
    assert words[words.index("--held-out") + 1] == "1/2,2/40"
    assert words[words.index("--examples") + 1] == "/runs a"
    assert not {"--held-out", "--examples"} & set(shlex.split(bench_command(record, place)))


def test_a_suite_of_before_says_what_it_did_not_record(place):
    path = place / "s" / SUITE_FILE
    record = json.loads(path.read_text())
    del record["given"]
    path.write_text(json.dumps(record))
    page = read_page(place / "s")
    assert page.command_note.startswith("with --data and --judge as they were")
    assert "--data" not in page.command
