"""A search that is killed in the middle of its calls goes on with the same proposals."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hotloop.core.attempt import Attempt
from hotloop.core.record import from_json, to_json
from hotloop.core.verdict import Status
from hotloop.engine.result import StopReason, collect
from hotloop.store.sqlite import SqliteStore

CHILD = Path(__file__).with_name("model_crash_child.py")


def search(folder: Path, *fate: str) -> int:
    child = subprocess.run(
        [sys.executable, str(CHILD), str(folder), *fate], capture_output=True, text=True
    )
    assert child.returncode in (0, -signal.SIGKILL), child.stderr
    return child.returncode


def asked(folder: Path) -> list[str]:
    return folder.with_suffix(".log").read_text().splitlines()


def number(line: str) -> int:
    return int(line.split()[0])


@pytest.mark.parametrize("fate", ["2:call", "4:call", "1:verify"])
def test_killed_in_the_middle_of_calls(tmp_path, fate):
    folder = tmp_path / "run"
    assert search(folder, fate) == -signal.SIGKILL
    with SqliteStore(folder) as store:
        left = [a for a in store.attempts() if a.verdict is None]
    assert left
    before = asked(folder)
    assert search(folder) == 0
    again = asked(folder)[len(before) :]
    unwritten = {a.id for a in left if a.candidate_id is None}
    calls = {number(line): line for line in again}
    # The calls that were under way are made again, as they were; those that were written are not.
    assert unwritten <= set(calls)
    cut_off = [line for line in before if number(line) in unwritten]
    assert cut_off == [calls[number(line)] for line in cut_off]
    assert not set(calls) & {a.id for a in left if a.candidate_id}
    with SqliteStore(folder) as store:
        result = collect(store, StopReason.EXHAUSTED)
    assert len(result.attempts) == 8
    assert {a.verdict.status for a in result.attempts} == {Status.PASSED}
    assert (result.calls, result.tokens) == (8, 800)


def test_attempts_of_earlier_journals_still_load():
    old = {
        "id": 1,
        "action": "schedule",
        "point": {"BLOCK": 16},
        "parents": [],
        "generator": "builtin",
        "candidate_id": "0" * 16,
        "verdict": None,
        "objective": None,
        "started_s": 0.5,
        "finished_s": None,
    }
    attempt = from_json(Attempt, old)
    assert (attempt.declared, attempt.asked, attempt.notes) == (None, None, ())
    assert from_json(Attempt, to_json(attempt)) == attempt
