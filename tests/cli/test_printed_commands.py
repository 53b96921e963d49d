"""Command lines that runs print: the real parser takes each, and each does what it says."""

import html
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
import typer.main
from model_run import Scribe, plan_in
from test_cli_precision import NATIVE
from test_refused_best import Closed

from hotloop import api
from hotloop.cli.main import app, main
from hotloop.cli.report import read_page
from hotloop.core.attempt import Action
from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.command_line import argument, number, option_words
from hotloop.core.units import parse_duration_s
from hotloop.dashboard.page_list import list_page
from hotloop.dashboard.site import Site
from hotloop.engine import StopReason
from hotloop.engine.result import collect
from hotloop.plan import COMMAND, plan_search
from hotloop.problems import load_problem_spec
from hotloop.report.best import render_best
from hotloop.store.reader import RunReader
from hotloop.store.sqlite import SqliteStore
from hotloop.testing.fakes import fake_verdict

LINE = re.compile(r"(?:`|: |^)(hotloop [a-z]+ [^`;\n]+)", re.MULTILINE)


def printed(text):
    """Return the command lines in a text."""
    return LINE.findall(text)


def parsed(line):
    """Return the command of a printed line and its options, as the command's own parser has them.

    An option that there is not, or a value of another type, is an error.
    """
    program, name, *words = shlex.split(line)
    assert program == "hotloop"
    return name, typer.main.get_command(app).commands[name].make_context(name, words).params


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "it's mine"
    folder.mkdir()
    for name in ("my problem.py", "-x.py"):
        (folder / name).write_text(NATIVE + "\nN = 4\n")
    monkeypatch.chdir(folder)
    return folder


ELSEWHERE = ("--judge", "bundle", "--no-wait", "--device", "cpu")


@pytest.mark.parametrize(
    ("problem", "more"),
    [
        ("my problem.py", ("--budget", "400h", "--model", "dir:my answers")),
        ("my problem.py", ("--precision", "strict", "--set", "N=8", "--max-candidates", "3")),
        (
            "my problem.py",
            ("--model", "dir:a", "--language", "cuda", "--sees", "code", "--max-usd", "0.00001"),
        ),
        ("-x.py", ("--seed", "3", "--min-isolation", "T0", "--strategy", "random")),
    ],
)
def test_what_a_run_says_at_its_end_can_be_run_and_goes_on_with_it(place, capsys, problem, more):
    assert main(["optimize", *ELSEWHERE, *more, "--out", "my run", "--", problem]) == 4
    lines = printed(capsys.readouterr().out)
    assert [parsed(line)[0] for line in lines] == ["bundle", "judge", "optimize"]
    assert parsed(lines[0])[1]["runs"] == [Path("my run")]
    with RunReader(place / "my run") as reader:
        before = [event.kind for event in reader.events()]
    again = lines[2].removesuffix(" --verdicts run.verdicts")
    assert again != lines[2]
    assert read_page(Path("my run")).command == again
    assert main(shlex.split(again)[1:]) == 4
    with RunReader(place / "my run") as reader:
        kinds = [event.kind for event in reader.events()]
    assert "continued" not in kinds[len(before) :], "nothing else is asked for"


def test_a_report_of_a_run_of_before_prints_what_its_journal_says(place):
    words = ["optimize", *ELSEWHERE, "--precision", "strict", "--out", "r", "my problem.py"]
    assert main(words) == 4
    with SqliteStore(place / "r") as store, RunReader(place / "r") as reader:
        spec = reader.spec()
        options = {name: value for name, value in spec.options.items() if name != COMMAND}
        store.begin(replace(spec, options={**options, "held_out": None}), reader.problem())
    page = read_page(place / "r")
    name, params = parsed(page.command)
    assert (name, params["precision"]) == ("optimize", "strict")
    assert "with the path of the problem" in page.command_note


def test_the_readme_beside_the_best_kernel(tmp_path):
    closed = Closed(tmp_path)
    closed.passes_short()
    text = (closed.best / "README.md").read_text()
    verify, optimize = (parsed(line) for line in printed(text))
    assert (verify[0], optimize[0]) == ("verify", "optimize")
    assert verify[1]["candidate"].is_file()
    assert (optimize[1]["problem"], optimize[1]["out"]) == (
        verify[1]["problem"], closed.best.parent
    )  # fmt: skip


def test_the_readme_beside_a_cuda_kernel_names_its_file(tmp_path):
    """It is written before the kernel lies in its folder."""
    plan = plan_in(tmp_path, language="cuda")
    file = SourceFile(path="kernel.cu", text="// a kernel\n")
    kernel = Candidate(language="cuda", sources=(file,), entry="kernel.cu")
    with SqliteStore(plan.folder) as store:
        scribe = Scribe(store, plan)
        scribe.setup()
        attempt = replace(scribe.propose(1, Action.DRAFT), candidate_id=kernel.id)
        store.propose(attempt, kernel)
        verdict = fake_verdict(0.5, kernel.id)
        store.conclude(replace(attempt, verdict=verdict, objective=0.5, finished_s=1.0))
        best = api._best(plan, store, collect(store, StopReason.CALLS))
    verify, _ = (parsed(line) for line in printed(render_best(best)["README.md"]))
    assert verify[1]["candidate"] == plan.folder / "best" / "kernel.cu"


def test_a_problem_that_was_made_in_python_is_named_by_the_file_beside_its_best(place):
    problem = load_problem_spec("my problem.py", device="cpu")
    plan = plan_search(problem, device="cpu")
    best = plan.folder / "best" / "problem.py"
    best.parent.mkdir(parents=True)
    best.write_text(problem.source)
    for line in (plan.search_command(), plan.verify_command()):
        assert parsed(line)[1]["problem"] == str(best)
    assert plan_search(best, device="cpu").problem.id == problem.id, "so that it goes on"


def test_the_empty_dashboard_names_its_folder(place):
    site = Site(place, lambda *given: None)
    template, values = list_page(site)
    page = site.render(template, {"events": "", "seen": "", **values})
    (line,) = re.findall(r"<code>(hotloop optimize [^<]+)</code>", page)
    assert parsed(html.unescape(line))[1]["out"] == place / "NAME"


@pytest.mark.parametrize("seconds", [0.5, 90.0, 900.0, 1.0e6, 1234567.25, 1e-5])
def test_a_duration_is_read_as_it_is_printed(seconds):
    assert parse_duration_s(f"{number(seconds)}s") == seconds


def test_words_of_options():
    given = {"--a": None, "--b": False, "--c": True, "--d": 1e-7, "--e": 3, "--f": "x y"}
    assert option_words(given) == ["--c", "--d", "0.0000001", "--e", "3", "--f", "x y"]
    assert [argument(a) for a in ("-x.py", "x.py", Path("/-x"))] == ["./-x.py", "x.py", "/-x"]
