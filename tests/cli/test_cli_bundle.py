"""`hotloop bundle` and `hotloop judge`: what travels, exit codes, and one line for bad input."""

import json

import pytest

from hotloop.cli.judge import seats
from hotloop.cli.main import main
from hotloop.core.problem import Problem, ProblemKind
from hotloop.errors import ConfigError, Pending
from hotloop.store.sqlite import SqliteStore
from hotloop.testing.fakes import make_spec
from hotloop.verify.bundle import Bundle, Item, read_bundle, read_verdicts, write_bundle
from hotloop.verify.outside import OutsideVerifier


def problem(name):
    return Problem(name=name, kind=ProblemKind.NATIVE, source=f"# {name}\n")


def make_run(folder, name, *, is_pending=True):
    """Write a run that waits for its problem to be loaded elsewhere."""
    with SqliteStore(folder) as store:
        store.begin(make_spec(problem(name)), problem(name))
        if is_pending:
            with pytest.raises(Pending):
                OutsideVerifier(store, problem(name)).load(problem(name))


def run(*words):
    return main([str(word) for word in words])


def test_what_runs_wait_for_goes_into_one_file(tmp_path, capsys):
    make_run(tmp_path / "suite" / "a", "a")
    make_run(tmp_path / "suite" / "b", "b")
    make_run(tmp_path / "suite" / "again", "a")  # the same problem: loaded once
    make_run(tmp_path / "one", "c")
    make_run(tmp_path / "done", "d", is_pending=False)
    out = tmp_path / "bundle"
    places = [tmp_path / name for name in ("suite", "one", "done")]
    assert run("bundle", *places, "--out", out, "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["problems"], record["items"], record["out"]) == (3, 3, str(out))
    assert len(record["runs"]) == 4
    assert sorted(p.name for p in read_bundle(out).problems.values()) == ["a", "b", "c"]


def test_nothing_pending_is_one_line_and_no_file(tmp_path, capsys):
    make_run(tmp_path / "done", "d", is_pending=False)
    assert run("bundle", tmp_path / "done", "--out", tmp_path / "bundle") == 1
    assert capsys.readouterr().out.count("\n") == 1
    assert not (tmp_path / "bundle").exists()


def test_no_run_is_the_users_mistake(tmp_path, capsys):
    for place in (tmp_path, tmp_path / "none"):
        assert run("bundle", place, "--out", tmp_path / "bundle") == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.fixture
def bundle(tmp_path):
    path = tmp_path / "bundle"
    found = problem("a")
    write_bundle(path, Bundle(problems={found.id: found}, items=(Item(problem_id=found.id),)))
    return path


def test_what_does_not_fit_the_time_is_exit_code_4(bundle, capsys):
    words = ("judge", "--bundle", bundle, "--device", "cpu", "--budget", "2s", "--json")
    assert run(*words) == 4
    record = json.loads(capsys.readouterr().out)
    assert (record["items"], record["pending"]) == (1, 1)
    assert record["out"] == f"{bundle}.verdicts"
    assert read_verdicts(bundle.with_name("bundle.verdicts")).infos == {}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--budget", "soon"), "--budget"),
        (("--device", "tpu"), "--device"),
        (("--device", "cpu", "--gpus", "1"), "--gpus"),
        (("--device", "cpu", "--min-isolation", "T9"), "--min-isolation"),
        (("--device", "cpu", "--out", "SAME"), "the bundle itself"),
        (("--device", "cpu", "--out", "/nowhere/v"), "/nowhere/v"),
        (("--device", "cpu", "--out", "."), "--out . is a folder; name a file in it"),
    ],
)
def test_bad_options_are_one_line(bundle, capsys, words, why):
    words = [bundle if word == "SAME" else word for word in words]
    assert run("judge", "--bundle", bundle, *words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert why in line
    read_bundle(bundle)  # unharmed
    assert not bundle.with_name("bundle.verdicts").exists()


def test_what_is_no_bundle_is_refused(tmp_path, capsys):
    (tmp_path / "b").write_text("hello\n")
    for path in (tmp_path / "b", tmp_path / "none"):
        assert run("judge", "--bundle", path, "--device", "cpu") == 2
        assert str(path) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("visible", "asked", "expected"),
    [
        (None, None, ("0", "1", "2", "3")),
        (None, "2", ("0", "1")),
        (None, "1,3", ("1", "3")),
        ("5,7", None, ("5", "7")),
        ("5,7", "7,", ("7",)),
        ("5,7", "1", ("5",)),
    ],
)
def test_one_judge_for_each_gpu_asked_for(monkeypatch, visible, asked, expected):
    four_gpus(monkeypatch, visible)
    assert seats("cuda", asked) == expected


@pytest.mark.parametrize("asked", ["0", "5", "-1", "x", "0,9", ","])
def test_gpus_that_are_not_there(monkeypatch, asked):
    four_gpus(monkeypatch, None)
    with pytest.raises(ConfigError, match="--gpus"):
        seats("cuda", asked)


def four_gpus(monkeypatch, visible):
    """A machine with four GPUs, as far as the driver's tool tells."""
    monkeypatch.setattr("hotloop.cli.judge.gpu_names", lambda: ("H200",) * 4)
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)


@pytest.mark.slow
def test_a_broken_problem_is_an_answer(bundle):
    assert run("judge", "--bundle", bundle, "--device", "cpu") == 0
    (error,) = read_verdicts(bundle.with_name("bundle.verdicts")).errors
    assert error.problem_error is not None
