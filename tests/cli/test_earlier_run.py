"""What a command changes in a run that it goes on with is said; closing none is refused."""

import pytest
from model_run import PROBLEM, plan_in, write_run

from hotloop.cli.earlier_run import changes, go_on_command
from hotloop.cli.main import main
from hotloop.plan import plan_search
from hotloop.store.sqlite import SqliteStore
from hotloop.verify.bundle import Verdicts, write_verdicts


def test_another_judge_is_said_and_the_same_is_not(tmp_path):
    write_run(tmp_path)
    assert changes(plan_in(tmp_path)) == []
    (line,) = changes(plan_in(tmp_path, judge="bundle"))
    assert line == "judge: bundle from now on, local until now; the 3 verdicts so far stay"


def test_verdicts_are_not_said_to_be_of_a_judge_that_was_asked_for_none(tmp_path):
    write_run(tmp_path)
    bundled = plan_in(tmp_path, judge="bundle")
    with SqliteStore(bundled.folder) as store:
        store.begin(bundled.spec, bundled.problem)
    (line,) = changes(plan_in(tmp_path))
    assert line == "judge: local from now on, bundle until now; the 3 verdicts so far stay"


def test_a_limit_that_is_reached_already_is_said(tmp_path):
    write_run(tmp_path)
    assert changes(plan_in(tmp_path, max_candidates=4)) == []
    (line,) = changes(plan_in(tmp_path, max_candidates=3))
    assert "--max-candidates 3: the run has 4 candidates already" in line
    assert changes(plan_in(tmp_path, out=tmp_path / "new", max_candidates=1)) == []


def test_a_run_that_is_not_there_cannot_be_closed(tmp_path, capsys):
    (tmp_path / "p.py").write_text(PROBLEM)
    folder = tmp_path / "none"
    words = ["optimize", str(tmp_path / "p.py"), "--device", "cpu", "--out", str(folder)]
    assert main([*words, "--close"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"hotloop: --close: {folder} holds no run")
    assert not folder.exists()


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        ("wall", "and a larger --budget"),
        ("candidates", "--budget 20s --seed 0 --out run and a larger --max-candidates"),
        ("interrupted", "--max-candidates 2 --seed 0 --out run"),
    ],
)
def test_the_command_that_goes_on_names_the_limit_that_ended_it(tmp_path, reason, end):
    path = tmp_path / "p.py"
    path.write_text(PROBLEM)
    plan = plan_search(path, device="cpu", out="run", budget=20, max_candidates=2)
    command = go_on_command(plan, reason)
    for words in end.split(" --"):
        assert words.removeprefix("--") in command
    assert ("--budget" in command.removesuffix("--budget")) is (reason != "wall")
    assert ("--max-candidates 2" in command) is (reason != "candidates")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("dir:p.py", "p.py is a file; name another"),
        ("dir:p.py/answers", "p.py is a file; name another"),
        ("dir:/proc/answers", "expected a folder that can be written"),
    ],
)
def test_a_folder_of_answers_that_cannot_be_leaves_no_run(
    tmp_path, capsys, monkeypatch, model, words
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.py").write_text(PROBLEM)
    command = ["optimize", "p.py", "--device", "cpu", "--out", "run", "--model", model]
    assert main(command) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
    assert not (tmp_path / "run").exists()


def test_a_file_of_verdicts_that_is_not_there_leaves_no_run(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.py").write_text(PROBLEM)
    words = ["optimize", "p.py", "--device", "cpu", "--judge", "bundle", "--no-wait"]
    assert main([*words, "--out", "run", "--verdicts", "none"]) == 2
    assert "none: expected a file to read" in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "run").exists()
    write_verdicts(tmp_path / "empty", Verdicts())
    assert main([*words, "--out", "run", "--verdicts", "empty"]) == 4
    assert "empty holds nothing new for this run" in capsys.readouterr().err
