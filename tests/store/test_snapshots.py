"""Snapshots: whole copies of a journal while it is written, and the way back to the newest one."""

import shutil
import subprocess
import threading
import time

import pytest

from hotloop.core import kill_points
from hotloop.errors import StoreError
from hotloop.store.opening import OLDEST_SQLITE, check_sqlite
from hotloop.store.reader import RunReader
from hotloop.store.snapshots import KEPT, SNAPSHOT_FOLDER, newest_good, take_snapshot
from hotloop.store.sqlite import JOURNAL_FILE, SqliteStore
from hotloop.testing.fakes import make_problem, make_spec
from hotloop.testing.store_suite import conclude, make_attempt


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "a run"


def begun(folder, **options) -> SqliteStore:
    store = SqliteStore(folder, **options)
    store.begin(make_spec(make_problem()), make_problem())
    return store


def add(store, number):
    attempt, candidate = make_attempt(number)
    store.propose(attempt, candidate)
    store.conclude(conclude(attempt))


def snapshots(folder):
    return sorted(path.name for path in (folder / SNAPSHOT_FOLDER).iterdir())


def wait_for(condition, timeout_s=20.0):
    deadline_s = time.monotonic() + timeout_s
    while not condition() and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert condition()


def damage(folder):
    """Spoil the journal's inner pages, and leave its first one as it is."""
    journal = folder / JOURNAL_FILE
    data = bytearray(journal.read_bytes())
    data[4096:] = b"\x55" * (len(data) - 4096)
    journal.write_bytes(data)


def test_a_snapshot_is_the_journal_of_that_moment(folder, tmp_path):
    with begun(folder) as store:
        add(store, 1)
        path = take_snapshot(folder / JOURNAL_FILE)
        before = store.attempts()
        add(store, 2)
    assert path.name == "journal-000000003.sqlite"
    shutil.copytree(folder, tmp_path / "copy")
    shutil.copy(path, tmp_path / "copy" / JOURNAL_FILE)
    with begun(tmp_path / "copy") as store:
        assert store.attempts() == before
        assert store.candidate(make_attempt(1)[1].id) == make_attempt(1)[1]


def test_the_newest_three_are_kept_and_nothing_new_makes_none(folder):
    with begun(folder) as store:
        for number in range(1, 6):
            add(store, number)
            assert take_snapshot(folder / JOURNAL_FILE) is not None
        assert take_snapshot(folder / JOURNAL_FILE) is None
    assert snapshots(folder) == [f"journal-{n:09d}.sqlite" for n in (7, 9, 11)]
    assert len(snapshots(folder)) == KEPT


def test_a_run_takes_them_by_itself_until_it_is_closed(folder):
    store = begun(folder, snapshot_every_s=0.05)
    wait_for(lambda: newest_good(folder) is not None)
    add(store, 1)
    wait_for(lambda: len(snapshots(folder)) >= 2)
    store.close()
    before = snapshots(folder)
    threads = [thread.name for thread in threading.enumerate()]
    assert "snapshots" not in threads
    assert not [name for name in before if ".tmp" in name]


def test_a_short_run_takes_none(folder):
    with begun(folder) as store:
        add(store, 1)
    assert not (folder / SNAPSHOT_FOLDER).exists()


def test_snapshots_that_fail_are_told_once_and_the_run_goes_on(folder):
    folder.mkdir()
    with begun(folder, snapshot_every_s=0.02) as store:
        (folder / SNAPSHOT_FOLDER).write_text("no folder")
        wait_for(lambda: store.notes("warning"))
        time.sleep(0.2)
        (note,) = store.notes("warning")
        assert "no snapshot of the journal" in note["message"]
        assert "the run goes on" in note["message"]
        add(store, 1)
        (folder / SNAPSHOT_FOLDER).unlink()
        wait_for(lambda: newest_good(folder) is not None)


def test_the_writer_goes_on_during_a_snapshot(folder):
    with begun(folder) as store:
        for _ in range(100):
            store.note("padding", {"text": "x" * 50_000})
        ended = threading.Event()

        def snapshot():
            take_snapshot(folder / JOURNAL_FILE)
            ended.set()

        taking = threading.Thread(target=snapshot)
        taking.start()
        waits_s, written = [], 0
        while not ended.is_set():
            began_s = time.monotonic()
            store.note("beside", {})
            waits_s.append(time.monotonic() - began_s)
            written += not ended.is_set()
        taking.join()
    assert written >= 2, "it did not wait for the end"
    assert max(waits_s) < 2.0


def test_a_damaged_journal_names_the_newest_good_snapshot_and_the_way_back(folder):
    with begun(folder) as store:
        for number in (1, 2, 3):
            add(store, number)
            take_snapshot(folder / JOURNAL_FILE)
        add(store, 4)
    *_, good, newest = sorted((folder / SNAPSHOT_FOLDER).iterdir())
    newest.write_bytes(newest.read_bytes()[:5000])
    damage(folder)
    with pytest.raises(StoreError, match="is damaged") as caught:
        SqliteStore(folder)
    told = str(caught.value)
    assert "\n" not in told
    assert str(good) in told
    assert str(newest) not in told
    cure = told[told.index("rm -f") : told.index(", then run")]
    subprocess.run(["sh", "-c", cure], check=True)
    with begun(folder) as store:
        assert [a.id for a in store.attempts()] == [1, 2]
        add(store, 3)


def test_a_damaged_journal_without_snapshots_says_what_is_left_to_do(folder):
    with begun(folder) as store:
        add(store, 1)
    damage(folder)
    with pytest.raises(StoreError, match="restore the folder from a copy") as caught:
        SqliteStore(folder)
    assert "\n" not in str(caught.value)


def test_a_reader_of_a_damaged_journal_is_told_the_same(folder):
    with begun(folder) as store:
        add(store, 1)
        take_snapshot(folder / JOURNAL_FILE)
    (folder / JOURNAL_FILE).write_bytes(b"junk " * 1000)
    with pytest.raises(StoreError, match="newest good snapshot"):
        RunReader(folder)


@pytest.mark.parametrize("point", ["before-snapshot", "snapshot-written", "after-snapshot"])
def test_a_death_in_a_snapshot_leaves_none_or_a_whole_one(folder, point):
    class Dies(BaseException):
        pass

    def die():
        raise Dies

    with begun(folder) as store:
        add(store, 1)
        kill_points.act_with(kill_points.at(f"{point}:1", die))
        try:
            with pytest.raises(Dies):
                take_snapshot(folder / JOURNAL_FILE)
        finally:
            kill_points.act_with(None)
        add(store, 2)
    found = newest_good(folder)
    assert (found is not None) == (point == "after-snapshot")


def test_half_a_snapshot_of_a_dead_writer_is_removed(folder):
    begun(folder).close()
    half = folder / SNAPSHOT_FOLDER / "journal.tmp123"
    half.parent.mkdir()
    half.write_bytes(b"SQLite")
    begun(folder).close()
    assert not half.exists()


def test_an_sqlite_that_is_too_old_is_refused_in_one_line():
    check_sqlite(OLDEST_SQLITE)
    with pytest.raises(StoreError, match=r"expected SQLite 3\.27\.0 or newer, got 3\.26\.0"):
        check_sqlite((3, 26, 0))
