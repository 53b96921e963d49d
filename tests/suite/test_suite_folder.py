"""A suite's folder: written whole, held by one, and refused where something else lies there."""

import json
from dataclasses import replace

import pytest

from hotloop.errors import ForeignRun, RunHeld
from hotloop.store.sqlite import SqliteStore
from hotloop.suite.folder import (
    RUNS_FOLDER,
    SUITE_FILE,
    Member,
    Suite,
    SuiteRecord,
    Trouble,
    check_suite,
    read_suite,
)

ONE, TWO = (
    Member(name=f"kernelbench/1/{n}", level=1, number=n, title=f"{n}_X", problem_id=f"{n}" * 16)
    for n in (1, 2)
)
ASKED = SuiteRecord(
    suite="kernelbench",
    problems=(ONE, TWO),
    options={"device": "cpu", "model": None, "settings": {"N": 4}},
    limits={"wall_s": 900.0},
)
SKIP = Trouble(kind="ProblemError", message="forward raises", skipped=True, again=False)


@pytest.fixture
def folder(tmp_path):
    with Suite(tmp_path / "s", ASKED):
        pass
    return tmp_path / "s"


def test_what_was_asked_is_read_back(folder):
    assert read_suite(folder) == ASKED
    assert sorted(p.name for p in folder.iterdir()) == ["lock", RUNS_FOLDER, SUITE_FILE]


def test_a_trouble_is_written_at_once_and_can_go_again(folder):
    with Suite(folder, ASKED) as suite:
        suite.note(ONE.name, SKIP)
        assert read_suite(folder).troubles == {ONE.name: SKIP}
        suite.note(TWO.name, None)
        suite.note(ONE.name, None)
        assert read_suite(folder).troubles == {}


def test_the_same_suite_keeps_its_troubles_and_takes_a_larger_budget(folder):
    with Suite(folder, ASKED) as suite:
        suite.note(ONE.name, SKIP)
    larger = replace(ASKED, limits={"wall_s": 1800.0})
    with Suite(folder, larger):
        assert read_suite(folder) == replace(larger, troubles={ONE.name: SKIP})


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"options": {**ASKED.options, "model": "dir:x"}}, "with model None, now it is 'dir:x'"),
        ({"options": {"device": "cpu", "model": None}}, "settings"),
        ({"problems": (ONE,)}, "kernelbench/1/2"),
        ({"problems": (ONE, replace(TWO, problem_id="f" * 16))}, "kernelbench/1/2 is another"),
        ({"suite": "mine"}, "the suite 'kernelbench'"),
    ],
)
def test_another_suite_is_refused_and_changes_nothing(folder, other, why):
    before = (folder / SUITE_FILE).read_bytes()
    with pytest.raises(ForeignRun) as error:
        Suite(folder, replace(ASKED, **other))
    assert why in str(error.value)
    assert "--out" in str(error.value)
    assert (folder / SUITE_FILE).read_bytes() == before


def test_a_folder_is_held_by_one(folder):
    with Suite(folder, ASKED), pytest.raises(RunHeld, match="use another --out"):
        Suite(folder, ASKED)


def test_a_single_run_is_named_as_such(tmp_path):
    SqliteStore(tmp_path / "run").close()
    with pytest.raises(ForeignRun, match="is a single run, not a suite"):
        check_suite(tmp_path / "run", ASKED)


def test_other_files_are_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for place in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(ForeignRun):
            Suite(place, ASKED)
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


def test_runs_without_their_suite_are_not_taken_over(tmp_path):
    (tmp_path / RUNS_FOLDER / "1-1").mkdir(parents=True)
    with pytest.raises(ForeignRun, match="no suite"):
        check_suite(tmp_path, ASKED)


def test_what_a_kill_before_the_first_file_leaves_is_a_new_suite(tmp_path):
    (tmp_path / RUNS_FOLDER).mkdir()
    (tmp_path / f"{SUITE_FILE}.tmp").write_text('{"half')
    with Suite(tmp_path, ASKED):
        assert read_suite(tmp_path) == ASKED


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is damaged"),
        ("[]", "is damaged"),
        ("\xff", "is damaged"),
        (json.dumps({"schema_version": 1}), "is damaged"),
        (json.dumps({"schema_version": 99}), "a newer hotloop"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line(folder, text, why):
    (folder / SUITE_FILE).write_bytes(text.encode("latin-1"))
    with pytest.raises(ForeignRun, match=why):
        check_suite(folder, ASKED)
