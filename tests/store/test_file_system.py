import subprocess

import pytest

from hotloop.errors import StoreError
from hotloop.store.failure import store_errors
from hotloop.store.file_system import NOT_LOCAL, file_system_magic
from hotloop.store.reader import RunReader
from hotloop.store.sqlite import SqliteStore
from hotloop.testing.fakes import make_problem, make_spec
from hotloop.testing.store_suite import make_attempt

NFS, EXT4 = 0x6969, 0xEF53


def journal_mode(store) -> str:
    return store._connection.execute("PRAGMA journal_mode").fetchone()[0]


def begun(folder, magic) -> SqliteStore:
    store = SqliteStore(folder, probe=lambda path: magic)
    store.begin(make_spec(make_problem()), make_problem())
    return store


@pytest.mark.parametrize("magic", sorted(NOT_LOCAL))
def test_a_file_system_that_is_not_local_gets_no_wal_and_a_warning(tmp_path, magic):
    folder = tmp_path / "run"
    with begun(folder, magic) as store:
        assert journal_mode(store) == "delete"
        assert NOT_LOCAL[magic] in store.warning
        assert str(folder) in store.warning
        store.propose(*make_attempt(1))
        with RunReader(folder) as reader:
            assert len(reader.attempts()) == 1
    assert not list(folder.glob("*-wal"))


@pytest.mark.parametrize("magic", [EXT4, None])
def test_a_local_one_gets_wal_and_no_warning(tmp_path, magic):
    with begun(tmp_path / "run", magic) as store:
        assert (journal_mode(store), store.warning) == ("wal", None)


def test_a_run_that_moves_between_both_keeps_everything(tmp_path):
    folder = tmp_path / "run"
    for number, magic in enumerate([EXT4, NFS, EXT4], start=1):
        with begun(folder, magic) as store:
            store.propose(*make_attempt(number))
            assert [a.id for a in store.attempts()] == list(range(1, number + 1))


def test_the_probe_says_what_stat_says(tmp_path):
    told = subprocess.run(
        ["stat", "-f", "-c", "%t", tmp_path], capture_output=True, text=True, check=True
    ).stdout
    assert file_system_magic(tmp_path) == int(told, 16)


def test_a_folder_that_is_not_there_is_an_error_of_the_store(tmp_path):
    with pytest.raises(StoreError, match="No such file"), store_errors(tmp_path):
        file_system_magic(tmp_path / "nowhere")
