"""A journal whose side files are torn is a whole journal of an earlier moment."""

import shutil
import struct

import pytest

from hotloop.store.reader import RunReader
from hotloop.store.sqlite import JOURNAL_FILE, SqliteStore
from hotloop.testing.fakes import make_problem, make_spec
from hotloop.testing.store_suite import conclude, make_attempt

WAL, SHM = f"{JOURNAL_FILE}-wal", f"{JOURNAL_FILE}-shm"
WAL_HEADER_BYTES, FRAME_HEADER_BYTES = 32, 24
"""https://sqlite.org/fileformat2.html#the_write_ahead_log"""


def begun(folder) -> SqliteStore:
    store = SqliteStore(folder)
    store.begin(make_spec(make_problem()), make_problem())
    return store


def events_of(folder) -> list[tuple[int, str]]:
    with RunReader(folder) as reader:
        return [(event.seq, event.kind) for event in reader.events()]


@pytest.fixture(scope="module")
def crashed(tmp_path_factory):
    """A folder as a `kill -9` leaves it: most of the journal is in the WAL."""
    live = tmp_path_factory.mktemp("live") / "run"
    dead = live.with_name("dead")
    begun(live).close()  # the schema and the run's start are in the database itself
    with begun(live) as store:
        for number in (1, 2, 3):
            attempt, candidate = make_attempt(number)
            store.propose(attempt, candidate)
            store.conclude(conclude(attempt))
            store.spend(0.5)
        shutil.copytree(live, dead)
    return dead


def frame_ends(wal: bytes) -> list[int]:
    (page_bytes,) = struct.unpack(">I", wal[8:12])
    return list(range(WAL_HEADER_BYTES, len(wal) + 1, FRAME_HEADER_BYTES + page_bytes))


def check(folder, before) -> int:
    """The journal is a beginning of `before`, its tables fit, and it can be gone on with."""
    with begun(folder) as store:
        attempts, spent_s = store.attempts(), store.spent_s()
        for attempt in attempts:
            store.candidate(attempt.candidate_id)
        store.rebuild()
        assert (store.attempts(), store.spent_s()) == (attempts, spent_s)
        store.propose(*make_attempt(9))
    after = events_of(folder)
    assert after[:-1] == before[: len(after) - 1]
    return len(after) - 1


def test_a_wal_that_ends_anywhere_is_an_earlier_moment(crashed, tmp_path):
    wal = (crashed / WAL).read_bytes()
    before = events_of(crashed)
    kept = []
    ends = frame_ends(wal)
    assert len(ends) > 10
    for end in ends:
        for size in (end - 1000, end - 1, end, end + 10):
            folder = tmp_path / str(size)
            shutil.copytree(crashed, folder)
            (folder / WAL).write_bytes(wal[: max(0, size)])
            (folder / SHM).unlink(missing_ok=True)
            kept.append(check(folder, before))
    assert kept == sorted(kept), "a longer WAL never holds less"
    assert (kept[0], kept[-1]) == (1, len(before))


def test_a_flipped_bit_in_the_wal_ends_it_there(crashed, tmp_path):
    wal = bytearray((crashed / WAL).read_bytes())
    before = events_of(crashed)
    wal[len(wal) // 2] ^= 1
    shutil.copytree(crashed, tmp_path / "run")
    (tmp_path / "run" / WAL).write_bytes(wal)
    (tmp_path / "run" / SHM).unlink()
    assert 1 <= check(tmp_path / "run", before) < len(before)


def test_without_the_shared_memory_file_nothing_is_lost(crashed, tmp_path):
    shutil.copytree(crashed, tmp_path / "run")
    (tmp_path / "run" / SHM).unlink()
    before = events_of(crashed)
    assert check(tmp_path / "run", before) == len(before)
