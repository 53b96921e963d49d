"""`show` of a run that has ended: what is open there was never judged and waits for nothing."""

import json

import pytest
from model_run import write_run

from hotloop.cli.main import main
from hotloop.core.record import to_json
from hotloop.engine import StopReason
from hotloop.errors import StoreError
from hotloop.report.endings import GOES_ON, is_ended, open_status
from hotloop.store.sqlite import SqliteStore

FOR_GOOD = {"wall", "candidates", "calls", "tokens", "usd", "exhausted", "closed"}


@pytest.fixture
def ended(tmp_path):
    """Write a run with one open attempt that ended so."""

    def write(reason):
        plan = write_run(tmp_path)
        with SqliteStore(plan.folder) as store:
            note = {"reason": reason, "budget": to_json(plan.spec.budget), "waiting": []}
            note |= {"message": "the judge is\nnot there"} if reason == "failed" else {}
            store.note("stopped", note)
        return plan.folder

    return write


def shown(capsys, *args):
    assert main(["show", *map(str, args)]) == 0
    return capsys.readouterr().out


def row_of(text, number):
    return next(line for line in text.splitlines() if line.split()[:1] == [str(number)])


def test_the_reasons_are_the_engines():
    assert {reason.value for reason in StopReason} == GOES_ON | FOR_GOOD
    assert not GOES_ON & FOR_GOOD
    assert not is_ended(None)
    assert open_status(ended=True) != open_status(ended=False)


def test_what_a_closed_search_left_was_never_judged(ended, capsys):
    folder = ended("closed")
    text = shown(capsys, folder)
    assert "never judged" in row_of(text, 4)
    assert "waiting" not in text
    assert text.strip().endswith(
        "1 attempt(s) never judged: the search was closed; the same command without --close goes on"
    )
    assert "never judged: the search was closed" in shown(capsys, folder, "--attempt", 4)
    assert json.loads(shown(capsys, folder, "--json"))["never_judged"] == [4]


def test_so_was_what_a_spent_budget_left(ended, capsys):
    text = shown(capsys, ended("calls"))
    assert "never judged: the search ended (calls); a larger --max-calls goes on" in text
    assert "failed:" not in text


def test_no_budget_is_promised_to_help_where_a_recording_has_no_answer(ended, capsys):
    text = shown(capsys, ended("exhausted"))
    assert "the recording holds no answer" in text
    assert "a larger budget" not in text
    assert "--max" not in text


@pytest.mark.parametrize("reason", sorted(GOES_ON))
def test_what_the_same_command_goes_on_with_still_waits(ended, capsys, reason):
    folder = ended(reason)
    text = shown(capsys, folder)
    assert "waiting" in row_of(text, 4)
    assert "never judged" not in text
    assert "no verdict yet" in shown(capsys, folder, "--attempt", 4)
    assert json.loads(shown(capsys, folder, "--json"))["never_judged"] == []


def test_why_a_run_failed_is_said_until_it_goes_on(ended, capsys):
    folder = ended("failed")
    assert "failed: the judge is not there" in shown(capsys, folder).splitlines()
    with SqliteStore(folder) as store:
        (setup,) = store.notes("setup")
        store.note("setup", setup)
    assert "failed:" not in shown(capsys, folder)


def test_so_is_what_the_journal_could_not_take(ended, capsys):
    folder = ended("calls")
    with pytest.raises(StoreError), SqliteStore(folder):
        raise StoreError("run: the disk is full; free some space")
    assert "failed: run: the disk is full; free some space" in shown(capsys, folder).splitlines()
    SqliteStore(folder).close()
    assert "failed:" not in shown(capsys, folder)


def test_a_suite_is_named_as_one(tmp_path, capsys):
    (tmp_path / "suite.json").write_text("{}")
    assert main(["show", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "is a suite; no run of it has begun" in line
    assert "hotloop report" in line
    for name in ("1-20", "1-19"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "journal.sqlite").touch()
    assert main(["show", str(tmp_path)]) == 2
    assert f"show one of its runs, like {tmp_path / 'runs' / '1-19'}" in capsys.readouterr().err


def test_a_run_that_went_on_after_its_end_waits_again(ended, capsys):
    folder = ended("calls")
    with SqliteStore(folder) as store:
        (setup,) = store.notes("setup")
        store.note("setup", setup)
    assert "never judged" not in shown(capsys, folder)
