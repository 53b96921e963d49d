import dataclasses
import json
import os
import resource
import sqlite3
import subprocess
import sys
import textwrap
import threading

import pytest

from hotloop.errors import ForeignRun, RunHeld, StoreError
from hotloop.store.blobs import BLOB_FOLDER
from hotloop.store.lock import LOCK_FILE, RESERVED_BYTES, WORDS_CHARACTERS, FolderLock, last_words
from hotloop.store.reader import RunReader
from hotloop.store.sqlite import JOURNAL_FILE, SqliteStore
from hotloop.testing.fakes import make_problem, make_spec
from hotloop.testing.store_suite import conclude, make_attempt
from hotloop.testing.suites import StoreSuite


class TestSqliteStore(StoreSuite):
    def make(self, folder):
        return SqliteStore(folder)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run"


def begun(folder) -> SqliteStore:
    store = SqliteStore(folder)
    store.begin(make_spec(make_problem()), make_problem())
    return store


def filled(folder, count: int = 3) -> SqliteStore:
    store = begun(folder)
    for number in range(1, count + 1):
        attempt, candidate = make_attempt(number)
        store.propose(attempt, candidate)
        store.conclude(conclude(attempt))
    return store


def only_blob(folder):
    (blob,) = (folder / BLOB_FOLDER).glob("*/*.json")
    return blob


def test_everything_survives_a_new_process_of_the_store(folder):
    with filled(folder) as store:
        store.propose(*make_attempt(9))
        store.spend(2.5)
        store.note("final", {"attempt_id": 1})
        before = (store.attempts(), store.spent_s(), store.notes("final"))
    with begun(folder) as store:
        assert (store.attempts(), store.spent_s(), store.notes("final")) == before
        assert store.candidate(make_attempt(9)[1].id) == make_attempt(9)[1]


def test_derived_tables_can_be_rebuilt_from_events(folder):
    with filled(folder) as store:
        store.spend(1.25)
        before = (store.attempts(), store.spent_s())
    damage = sqlite3.connect(folder / JOURNAL_FILE)
    damage.execute("DELETE FROM attempts")
    damage.execute("UPDATE spending SET seconds = 99")
    damage.commit()
    damage.close()
    with begun(folder) as store:
        assert list(store.attempts()) == []
        store.rebuild()
        assert (store.attempts(), store.spent_s()) == before
        assert store.candidate(make_attempt(2)[1].id) == make_attempt(2)[1]


@pytest.mark.parametrize("statement", ["DELETE FROM events", "UPDATE events SET kind = 'x'"])
def test_events_are_append_only(folder, statement):
    filled(folder).close()
    connection = sqlite3.connect(folder / JOURNAL_FILE)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)
    connection.close()


def test_is_durable_by_its_settings(folder):
    # A power cut cannot be staged here, so this looks at what SQLite was told.
    with begun(folder) as store:
        pragmas = {
            name: store._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    full = 2
    assert pragmas == {
        "journal_mode": "wal",
        "synchronous": full,
        "foreign_keys": 1,
        "busy_timeout": 30_000,
    }


def test_many_threads_may_write(folder):
    with begun(folder) as store:
        threads = [
            threading.Thread(target=lambda: [store.spend(0.5) for _ in range(10)]) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for number in range(1, 11):
            store.propose(*make_attempt(number))
        for thread in threads:
            thread.join()
        assert store.spent_s() == 20.0
        assert len(store.attempts()) == 10


def test_a_second_writer_is_refused_and_told_who_holds_the_folder(folder):
    with begun(folder), pytest.raises(RunHeld, match=f"pid {os.getpid()} on host "):
        SqliteStore(folder)
    SqliteStore(folder).close()


def test_a_writer_in_another_process_holds_the_folder_until_it_is_killed(folder):
    program = f"""
        import sys, time
        from pathlib import Path
        from hotloop.store.sqlite import SqliteStore
        store = SqliteStore(Path({str(folder)!r}))
        print("held", flush=True)
        time.sleep(60)
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "held\n"
        with pytest.raises(RunHeld, match=f"pid {child.pid} "):
            SqliteStore(folder)
    finally:
        child.kill()
        child.communicate()
    SqliteStore(folder).close()


def test_a_reader_sees_each_acknowledged_write_while_the_writer_runs(folder):
    with filled(folder, 1) as store, RunReader(folder) as reader:
        assert len(reader.attempts()) == 1
        for number in (2, 3):
            store.propose(*make_attempt(number))
            assert len(reader.attempts()) == number
        store.spend(4.0)
        assert reader.spent_s() == 4.0


def test_a_newer_journal_is_refused(folder):
    filled(folder).close()
    connection = sqlite3.connect(folder / JOURNAL_FILE)
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    expected = r"written by a newer hotloop \(schema 7, this one knows 2\)"
    with pytest.raises(ForeignRun, match=expected):
        SqliteStore(folder)
    with pytest.raises(ForeignRun, match=expected):
        RunReader(folder)


def test_a_folder_with_other_files_is_refused_and_left_alone(folder):
    folder.mkdir()
    (folder / "thesis.tex").write_text("do not touch")
    with pytest.raises(ForeignRun, match="no hotloop run"):
        SqliteStore(folder)
    assert [p.name for p in folder.iterdir()] == ["thesis.tex"]


def test_an_empty_folder_is_fine(folder):
    folder.mkdir()
    begun(folder).close()


def test_a_file_is_refused(folder):
    folder.write_text("a file")
    with pytest.raises(ForeignRun, match="is a file"):
        SqliteStore(folder)


def test_another_programs_database_is_refused(folder):
    folder.mkdir()
    connection = sqlite3.connect(folder / JOURNAL_FILE)
    connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.commit()
    connection.close()
    with pytest.raises(ForeignRun, match="no hotloop run"):
        SqliteStore(folder)


def test_a_refused_folder_is_not_held(folder):
    filled(folder).close()
    other = make_problem("fake/other", source="# another\n")
    with SqliteStore(folder) as store, pytest.raises(ForeignRun, match="fake/other"):
        store.begin(make_spec(other), other)
    begun(folder).close()


def test_a_junk_journal_is_reported_as_damaged(folder):
    folder.mkdir()
    (folder / JOURNAL_FILE).write_bytes(b"junk " * 1000)
    with pytest.raises(StoreError, match="damaged"):
        SqliteStore(folder)


def test_a_damaged_blob_is_detected(folder):
    with begun(folder) as store:
        attempt, candidate = make_attempt(1)
        store.propose(attempt, candidate)
        blob = only_blob(folder)
        data = bytearray(blob.read_bytes())
        data[20] ^= 1
        blob.write_bytes(data)
        with pytest.raises(StoreError, match="damaged"):
            store.candidate(candidate.id)
        store.propose(dataclasses.replace(attempt, id=2), candidate)
        assert store.candidate(candidate.id) == candidate


def test_a_missing_blob_is_named(folder):
    with begun(folder) as store:
        attempt, candidate = make_attempt(1)
        store.propose(attempt, candidate)
        only_blob(folder).unlink()
        with pytest.raises(StoreError, match=f"{candidate.id}.*missing"):
            store.candidate(candidate.id)


def test_half_written_blobs_of_a_dead_writer_are_removed(folder):
    with begun(folder) as store:
        store.propose(*make_attempt(1))
        half = only_blob(folder).with_suffix(".tmp123")
        half.write_bytes(b"{")
    with begun(folder) as store:
        assert not half.exists()
        assert store.candidate(make_attempt(1)[1].id) == make_attempt(1)[1]


def propose_on_a_full_disk(store):
    size = (store.folder / f"{JOURNAL_FILE}-wal").stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        store.propose(*make_attempt(2))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_says_so_and_loses_nothing(folder):
    filled(folder, 1).close()
    with begun(folder) as store:
        with pytest.raises(StoreError, match="disk"):
            propose_on_a_full_disk(store)
        assert len(store.attempts()) == 1
        store.propose(*make_attempt(2))
        assert len(store.attempts()) == 2


def test_a_writer_that_its_journal_fails_leaves_its_last_words(folder):
    with pytest.raises(StoreError, match="disk") as told, begun(folder) as store:
        propose_on_a_full_disk(store)
    assert last_words(folder) == str(told.value)[:WORDS_CHARACTERS]
    with begun(folder):
        assert last_words(folder) == "", "somebody goes on"
    (folder / JOURNAL_FILE).write_bytes(b"junk " * 1000)
    with pytest.raises(StoreError, match="damaged"):
        SqliteStore(folder)
    assert "the journal is damaged" in last_words(folder)


def test_a_writer_that_ends_as_it_should_or_by_another_fault_leaves_none(folder):
    filled(folder).close()
    assert last_words(folder) == ""
    with pytest.raises(ZeroDivisionError), begun(folder):
        _ = 1 // 0
    assert last_words(folder) == ""
    assert last_words(folder / "nothing") == ""
    for foreign in ("", "[]", "x", '{"failed": 3}', "[" * 100_000):
        (folder / LOCK_FILE).write_text(foreign)
        assert last_words(folder) == ""


def test_the_longest_words_leave_the_holder_readable(folder):
    folder.mkdir()
    lock = FolderLock(folder)
    lock.leave_words("\U0001f4be" * 9999)
    lock.release()
    assert (folder / LOCK_FILE).stat().st_size == RESERVED_BYTES
    assert json.loads((folder / LOCK_FILE).read_text())["pid"] == os.getpid()
    FolderLock(folder).release()
    assert last_words(folder) == ""
