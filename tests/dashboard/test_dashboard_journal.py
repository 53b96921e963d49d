"""Reading journals for the dashboard: whole, by what is new, and while somebody writes."""

import json
import os
import socket
import sqlite3
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from dashboard_runs import open_run, unsynced, write_run

from hotloop.core.verdict import Status
from hotloop.dashboard.attempt_record import read_attempt
from hotloop.dashboard.listing import scan
from hotloop.dashboard.shelf import Shelf
from hotloop.dashboard.state import Activity, activity, read_state
from hotloop.dashboard.tail import signature
from hotloop.dashboard.trouble import PageTrouble
from hotloop.engine.result import best_attempt, stored_finals
from hotloop.errors import StoreError
from hotloop.llm.call_notes import FAILED, INTENT, RESPONSE
from hotloop.store.reader import RunReader
from hotloop.store.sqlite import SqliteStore

STEPS = [Status.TIMEOUT, 2.0, None, Status.INCORRECT_NUMERICAL, 1.0]


def test_what_is_new_adds_up_to_the_whole(tmp_path):
    with open_run(tmp_path / "r") as writer:
        state = read_state(tmp_path / "r")
        for n, outcome in enumerate(STEPS, 1):
            writer.add(n, outcome, (n - 1,) if n > 1 else ())
            state = read_state(tmp_path / "r", state)
            assert state == read_state(tmp_path / "r")
        writer.final(5, 1.1)
        writer.store.note("warning", {"message": "look"})
        writer.stop()
        state = read_state(tmp_path / "r", state)
        assert state == read_state(tmp_path / "r")
    assert (state.warnings, state.stop["reason"], state.spending.calls) == (("look",), "calls", 5)
    assert read_state(tmp_path / "r", state) == state, "nothing is taken twice"


def test_the_best_is_the_one_that_the_run_reports(tmp_path):
    write_run(tmp_path / "r", [2.0, 1.0, 1.5, Status.TIMEOUT], finals={1: 0.9, 3: 1.5})
    with RunReader(tmp_path / "r") as reader:
        expected = best_attempt(reader.attempts(), stored_finals(reader))
    state = read_state(tmp_path / "r")
    assert state.best is not None
    assert state.best.id == expected.id == 1
    assert state.final.performance.latency_ms == 0.9


def test_attempts_are_the_journals_without_their_bulk(tmp_path):
    write_run(tmp_path / "r", [Status.INCORRECT_NUMERICAL, 1.0])
    light = read_state(tmp_path / "r").attempts
    with RunReader(tmp_path / "r") as reader:
        whole = reader.attempts()
    for a, b in zip(light, whole, strict=True):
        assert (a.id, a.action, a.asked, a.objective) == (b.id, b.action, b.asked, b.objective)
        assert a.verdict.status is b.verdict.status
        assert a.verdict.performance == b.verdict.performance
        assert a.verdict.correctness is None
    assert read_attempt(tmp_path / "r", 1).attempt == whole[0]
    assert read_attempt(tmp_path / "r", 9) is None


def test_another_run_in_the_same_folder_is_read_afresh(tmp_path):
    write_run(tmp_path / "r", [1.0, 2.0, 3.0])
    former = read_state(tmp_path / "r")
    for path in sorted((tmp_path / "r").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    write_run(tmp_path / "r", [0.5])
    assert [a.objective for a in read_state(tmp_path / "r", former).attempts] == [0.5]


def test_calls_are_those_of_the_attempt(tmp_path):
    write_run(tmp_path / "r", [1.0, 2.0])
    (call,) = read_attempt(tmp_path / "r", 2).calls
    assert call.prompt.messages[-1].text == "Write a faster kernel."
    assert call.reply.reasoning == "The loads are not coalesced."
    with RunReader(tmp_path / "r") as reader:
        kinds = (INTENT, RESPONSE, FAILED)
        assert [note.kind for note in reader.call_notes(kinds, 2)] == [INTENT, RESPONSE]
        assert reader.call_notes((RESPONSE,), 3) == []


def test_the_connection_cannot_write(tmp_path):
    write_run(tmp_path / "r", [1.0])
    with RunReader(tmp_path / "r") as reader:
        connection = reader._connection
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute("DELETE FROM spending")


def test_reading_never_holds_up_or_damages_a_writer(tmp_path):
    folder = tmp_path / "r"
    failed, seen = [], []
    done = threading.Event()
    shelf = Shelf(read_state)

    def look():
        while not done.is_set():
            try:
                seen.append(len(shelf.get(folder).attempts))
            except PageTrouble as trouble:
                failed.append(trouble.message)

    with unsynced(), open_run(folder) as writer:
        threads = [threading.Thread(target=look) for _ in range(2)]
        for thread in threads:
            thread.start()
        for n in range(1, 41):
            writer.add(n, 1.0 if n % 2 else Status.TIMEOUT)
        done.set()
        for thread in threads:
            thread.join()
        assert len(shelf.get(folder).attempts) == 40
    assert failed == []
    assert len(set(seen)) > 3, "it was seen growing"


def test_a_look_at_what_is_unchanged_opens_nothing(tmp_path):
    write_run(tmp_path / "r", [1.0])
    reads = []

    def read(folder, former):
        reads.append(folder)
        return read_state(folder, former)

    shelf = Shelf(read)
    first = shelf.get(tmp_path / "r")
    assert shelf.get(tmp_path / "r") is first
    assert len(reads) == 1
    with RunReader(tmp_path / "r"):
        assert shelf.get(tmp_path / "r") is first, "another reader is no news"
    before = signature(tmp_path / "r")
    write_more(tmp_path / "r")
    assert signature(tmp_path / "r") != before
    assert shelf.get(tmp_path / "r").warnings == ("news",)


def write_more(folder):
    with SqliteStore(folder) as store:
        store.note("warning", {"message": "news"})


def test_the_activity_of_a_run(tmp_path):
    folder = tmp_path / "r"
    with open_run(folder) as writer:
        writer.add(1, 1.0)
        assert activity(read_state(folder)) is Activity.RUNNING
        writer.stop("waiting")
        assert activity(read_state(folder)) is Activity.WAITING
        writer.add(2, None)
        assert activity(read_state(folder)) is Activity.RUNNING, "it went on"
        writer.stop("failed")
        assert activity(read_state(folder)) is Activity.FAILED
        writer.stop("wall")
        assert activity(read_state(folder)) is Activity.ENDED


def test_a_run_that_was_killed_is_not_called_running(tmp_path):
    folder = write_run(tmp_path / "r", [1.0], ended=False)
    state = read_state(folder)
    holder = folder / "lock"
    gone = {"pid": 2**22 + 1, "host": socket.gethostname()}
    holder.write_text(json.dumps(gone))
    assert activity(state) is Activity.GONE
    holder.write_text(json.dumps({**gone, "pid": os.getpid()}))
    assert activity(state) is Activity.RUNNING
    holder.write_text(json.dumps({"pid": 1, "host": "another"}))
    assert activity(state, now=state.last_at + 10) is Activity.RUNNING
    assert activity(state, now=state.last_at + 1000) is Activity.SILENT
    holder.write_text("")
    assert activity(replace(state, stop={"reason": "wall"})) is Activity.ENDED


def test_a_run_that_its_disk_ended_says_so_until_it_goes_on(tmp_path, browse):
    folder = write_run(tmp_path / "r", [1.0], ended=False)
    with pytest.raises(StoreError), SqliteStore(folder):
        raise StoreError("r: the disk is full; free some space")
    assert activity(read_state(folder)) is Activity.FAILED
    assert "failed" in browse.get("/").text
    run_id = scan(tmp_path).runs[0].id
    assert "failed: r: the disk is full; free some space" in browse.get(f"/run/{run_id}").text
    with SqliteStore(folder) as store:
        assert activity(read_state(folder)) is Activity.RUNNING, "it goes on"
        store.note("stopped", {"reason": "wall", "message": None})
    assert activity(read_state(folder)) is Activity.ENDED
    assert "the disk is full" not in browse.get(f"/run/{run_id}").text


def test_a_listing_names_runs_once_and_skips_what_is_none(tmp_path):
    write_run(tmp_path / "a" / "b", [1.0])
    for name in ("c", ".hidden", "a/b/blobs/x", "deep/" * 9):
        folder = tmp_path / name
        folder.mkdir(parents=True, exist_ok=True)
        Path(folder, "journal.sqlite").touch()
    (tmp_path / "d" / "journal.sqlite").mkdir(parents=True)
    found = scan(tmp_path).places
    assert [place.name for place in found] == ["a/b", "c"]
    assert len({place.id for place in found}) == 2
    assert scan(tmp_path).find(found[0].id, is_suite=False) == found[0]
    assert scan(tmp_path).find(found[0].id, is_suite=True) is None
    assert scan(tmp_path / "a" / "b").runs[0].name == "b", "a run's own folder can be served"
    assert scan(tmp_path / "missing").places == ()
