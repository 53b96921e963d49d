import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from hotloop.errors import ForeignRun, StoreError
from hotloop.store.reader import RunReader
from hotloop.store.sqlite import JOURNAL_FILE, SqliteStore
from hotloop.testing.fakes import make_problem, make_spec
from hotloop.testing.store_suite import conclude, make_attempt


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "a run? with #odd% name"
    with SqliteStore(folder) as store:
        store.begin(make_spec(make_problem()), make_problem())
        attempt, candidate = make_attempt(1)
        store.propose(attempt, candidate)
        store.conclude(conclude(attempt))
        store.note("final", {"attempt_id": 1})
        store.spend(3.0)
    return folder


def test_reads_what_the_writer_left(folder):
    with RunReader(folder) as reader:
        assert reader.spec() == make_spec(make_problem())
        assert reader.problem() == make_problem()
        assert list(reader.attempts()) == [conclude(make_attempt(1)[0])]
        assert reader.candidate(make_attempt(1)[1].id) == make_attempt(1)[1]
        assert list(reader.notes("final")) == [{"attempt_id": 1}]
        assert reader.spent_s() == 3.0


def test_events_can_be_followed(folder):
    with RunReader(folder) as reader:
        events = reader.events()
        assert [e.kind for e in events] == ["begun", "proposed", "concluded", "final", "spent"]
        assert [e.kind for e in reader.events(after=events[2].seq)] == ["final", "spent"]


def test_leaves_the_folder_as_it_was(folder):
    before = {p.name: p.stat().st_mtime_ns for p in folder.iterdir() if p.is_file()}
    with RunReader(folder) as reader:
        reader.attempts()
    after = {p.name: p.stat().st_mtime_ns for p in folder.iterdir() if p.is_file()}
    assert {n: t for n, t in after.items() if n in before} == before


@contextmanager
def as_nobody():
    """Give up root's right to write anywhere, for files."""
    if os.geteuid() != 0:
        yield
        return
    try:
        os.seteuid(65534)
    except OSError:
        pytest.skip("there is no other user here")
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("writer_runs", [True, False])
def test_reads_a_folder_that_cannot_be_written(writer_runs):
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "run"
        store = SqliteStore(folder)
        store.begin(make_spec(make_problem()), make_problem())
        store.propose(*make_attempt(1))
        if not writer_runs:
            store.close()
        for path in (Path(parent), folder):
            path.chmod(0o555)
        try:
            with as_nobody(), RunReader(folder) as reader:
                assert len(reader.attempts()) == 1
                if not writer_runs:
                    with pytest.raises(StoreError, match="make it writable"):
                        SqliteStore(folder)
        finally:
            for path in (Path(parent), folder):
                path.chmod(0o755)
            store.close()


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(ForeignRun, match="no hotloop run"):
        RunReader(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_has_not_begun_is_refused(tmp_path):
    SqliteStore(tmp_path / "run").close()
    with pytest.raises(ForeignRun, match="not begun"):
        RunReader(tmp_path / "run")


def test_the_journal_file_is_marked_as_ours(folder):
    head = (folder / JOURNAL_FILE).read_bytes()[:100]
    assert head.startswith(b"SQLite format 3")
    assert head[68:72] == b"HLOP"


def test_a_damaged_journal_is_one_line_and_stays_not_open(folder):
    journal = folder / JOURNAL_FILE
    journal.write_bytes(b"no database at all" * 1000)
    for side in ("-wal", "-shm"):
        journal.with_name(journal.name + side).unlink(missing_ok=True)
    with pytest.raises(StoreError, match="the journal is damaged") as caught:
        RunReader(folder)
    # The error still holds the frames in which the journal was open.
    held = [os.readlink(entry.path) for entry in os.scandir("/proc/self/fd") if _is_link(entry)]
    assert str(journal.resolve()) not in held
    assert "\n" not in str(caught.value)


def _is_link(entry):
    try:
        os.readlink(entry.path)
    except OSError:  # the one of this very listing
        return False
    return True
