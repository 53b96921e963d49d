"""An empty journal beside the rest of its run is damaged; without it, it is a new one."""

import pytest

from hotloop.errors import ForeignRun, StoreError
from hotloop.store.reader import RunReader
from hotloop.store.snapshots import take_snapshot
from hotloop.store.sqlite import JOURNAL_FILE, SqliteStore
from hotloop.testing.fakes import make_problem, make_spec
from hotloop.testing.store_suite import make_attempt


def begin(folder):
    store = SqliteStore(folder)
    store.begin(make_spec(make_problem()), make_problem())
    return store


def empty(folder):
    (folder / JOURNAL_FILE).write_bytes(b"")


@pytest.mark.parametrize("open_run", [SqliteStore, RunReader])
def test_a_run_whose_journal_was_emptied_does_not_begin_anew(tmp_path, open_run):
    with begin(tmp_path) as store:
        store.propose(*make_attempt(1))
    empty(tmp_path)
    with pytest.raises(StoreError, match="is damaged .it is empty, and the rest") as caught:
        open_run(tmp_path)
    assert "restore the folder from a copy" in str(caught.value)
    assert (tmp_path / JOURNAL_FILE).read_bytes() == b"", "it was left as it was"


def test_the_way_back_is_told_where_there_is_one(tmp_path):
    with begin(tmp_path) as store:
        store.note("padding", {})
        copy = take_snapshot(tmp_path / JOURNAL_FILE)
    empty(tmp_path)
    with pytest.raises(StoreError, match="the newest good snapshot is") as caught:
        SqliteStore(tmp_path)
    assert str(copy) in str(caught.value)


def test_an_empty_journal_of_a_run_that_never_began_is_begun(tmp_path):
    empty(tmp_path)
    with pytest.raises(ForeignRun, match="has not begun yet"):
        RunReader(tmp_path)
    with begin(tmp_path) as store:
        store.propose(*make_attempt(1))
    with RunReader(tmp_path) as reader:
        assert len(reader.attempts()) == 1
