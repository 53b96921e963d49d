"""Command lines that suites print: the real parser takes each, and it goes on with the suite."""

import json
import shlex

import pytest
import typer.main
from sized_problem import SOURCE
from suite_figure_runs import Made, write_run

from hotloop.cli.bench_text import closing
from hotloop.cli.main import app, main
from hotloop.cli.report import read_page
from hotloop.core.record import to_json
from hotloop.problems import list_kernelbench
from hotloop.store.reader import RunReader
from hotloop.store.sqlite import JOURNAL_FILE
from hotloop.suite.command import bench_command
from hotloop.suite.folder import SUITE_FILE, Member, SuiteRecord, read_suite
from hotloop.suite.planning import plan_suite
from hotloop.suite.standing import read_standing

MODEL = "dir:answers"
LANGUAGES = ("cuda", "triton", None)
"""Of the verified kernels of the earlier suite; of the third problem it has none."""


def parsed(line):
    """Return the command of a printed line and its options, as the command's own parser has them.

    An option that there is not, or a value of another type, is an error.
    """
    program, name, *words = shlex.split(line)
    assert program == "hotloop"
    return name, typer.main.get_command(app).commands[name].make_context(name, words).params


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A data set of three problems, and a suite with kernels of two of them in two languages."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOTLOOP_KERNELBENCH", raising=False)
    data = tmp_path / "the data" / "level1"
    data.mkdir(parents=True)
    members = []
    for n, language in enumerate(LANGUAGES, 1):
        (data / f"{n}_Add.py").write_text(SOURCE.format(n=n))
        name = f"kernelbench/1/{n}"
        member = Member(name=name, level=1, number=n, title=f"{n}_Add", problem_id=f"p{n}")
        if language is not None:
            made = Made(outcomes=(1.0,), finals={1: 1.0}, language=language)
            write_run(tmp_path / "earlier" / member.folder, made, name)
        members.append(member)
    options = {"generator": "model", "model": MODEL, "device": "cuda", "settings": {}}
    record = SuiteRecord(suite="kernelbench", problems=tuple(members), options=options, limits={})
    (tmp_path / "earlier" / SUITE_FILE).write_text(json.dumps(to_json(record)))
    return tmp_path


WORDS = (
    "bench", "kernelbench", "--levels", "1", "--data", "the data", "--device", "cpu", "--judge",
    "bundle", "--out", "my suite",
)  # fmt: skip
STARTED = ("--start", "earlier", "--model", MODEL)


def spec_of_runs(folder):
    """Return what each run of a suite was asked to do."""
    found = {}
    for journal in sorted(folder.glob(f"runs/*/{JOURNAL_FILE}")):
        with RunReader(journal.parent) as reader:
            found[journal.parent.name] = reader.spec()
    return found


@pytest.mark.parametrize(
    "more",
    [
        (),
        *(
            pytest.param(more, marks=pytest.mark.slow)
            for more in (
                ("--language", "cuda"),
                ("--precision", "strict", "--full-final", "--shared-budget"),
                ("--budget", "400h", "--max-usd", "1234567.5", "--held-out", "1/2"),
                ("--min-isolation", "T0"),
            )
        ),
    ],
)
def test_a_suite_in_two_languages_goes_on_with_the_printed_line(place, capsys, more):
    assert main([*WORDS, *STARTED, *more, "--no-wait"]) == 4
    record = read_suite(place / "my suite")
    line = read_page(place / "my suite").command
    name, params = parsed(line)
    assert name == "bench"
    asked = dict(zip(more[::2], more[1::2], strict=False))
    assert params["language"] == asked.get("--language")
    assert params["precision"] == asked.get("--precision")
    assert (params["full_final"], params["shared_budget"]) == (("--full-final" in more),) * 2
    assert str(params["start"]) == "earlier"
    assert "cuda, triton" not in line
    runs = spec_of_runs(place / "my suite")
    assert "1-1" in runs
    assert main([*shlex.split(line)[1:], "--no-wait"]) == 4
    assert "use another --out" not in capsys.readouterr().err
    assert read_suite(place / "my suite") == record
    assert spec_of_runs(place / "my suite") == runs


@pytest.mark.slow
def test_verifying_starts_alone_is_printed_so(place):
    assert main([*WORDS, "--start", "earlier", "--start-only", "--no-wait"]) == 4
    record = read_suite(place / "my suite")
    line = read_page(place / "my suite").command
    assert parsed(line)[1]["start_only"]
    assert main([*shlex.split(line)[1:], "--no-wait"]) == 4
    assert read_suite(place / "my suite").troubles == record.troubles


@pytest.mark.slow
def test_a_record_of_before_prints_no_list_of_languages(place):
    """Which language was asked for is not known: each kernel has its own."""
    assert main([*WORDS, *STARTED, "--no-wait"]) == 4
    path = place / "my suite" / SUITE_FILE
    record = json.loads(path.read_text())
    assert record["options"]["language"] == "cuda, triton"
    del record["given"]
    path.write_text(json.dumps(record))
    page = read_page(place / "my suite")
    assert parsed(page.command)[1]["language"] is None
    assert "--start" in page.command_note
    words = shlex.split(page.command)[1:]
    rest = ("--start", "earlier", "--data", "the data", "--judge", "bundle", "--no-wait")
    assert main([*words, *rest]) == 4


@pytest.mark.slow
def test_a_run_of_a_suite_is_gone_on_with_by_the_suites_line(place):
    assert main([*WORDS, *STARTED, "--held-out", "1/1", "--no-wait"]) == 4
    of_suite = read_page(place / "my suite").command
    page = read_page(place / "my suite" / "runs" / "1-1")
    assert page.command == of_suite, "optimize knows no --held-out"
    assert "belongs" in page.command_note
    given = {"device": "cpu", "data": "the data", "start": place / "earlier", "model": MODEL}
    plan = plan_suite(list_kernelbench("the data"), place / "other", given)
    command = bench_command(plan.record, plan.folder)
    assert {job.plan.search_command() for job in plan.jobs} == {command}
    parsed(command)
    for job in plan.jobs:  # each kernel is judged again by itself
        assert parsed(job.plan.verify_command())[1]["problem"] == job.member.name


def test_what_a_suite_says_at_its_end_can_be_run(place):
    given = {"device": "cpu", "data": "the data", "model": MODEL, "judge": "bundle"}
    plan = plan_suite(list_kernelbench("the data"), place / "my suite", given)
    assert main([*WORDS, "--model", MODEL, "--no-wait"]) == 4
    rows = [read_standing(plan.folder / m.folder, m, None) for m in plan.record.problems]
    lines = [line.partition(": ")[2] for line in closing(plan, rows).splitlines()]
    printed = [parsed(line) for line in lines if line.startswith("hotloop ")]
    assert [name for name, _ in printed] == ["bundle", "judge", "show"]
    assert printed[0][1]["runs"] == [plan.folder]
    assert printed[2][1]["run"].parent == plan.folder / "runs"
