import errno
import sqlite3
from pathlib import Path

import pytest

from hotloop.errors import HotloopError, RunHeld, StoreError
from hotloop.store.failure import store_errors

FOLDER = Path("/some/run")


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EDQUOT, "free some space"),
        (errno.EROFS, "make it writable"),
        (errno.EACCES, "make it writable"),
        (errno.EIO, "check the disk"),
    ],
)
def test_file_errors_name_folder_and_remedy(code, remedy):
    with pytest.raises(StoreError, match=f"/some/run.*{remedy}"), store_errors(FOLDER):
        raise OSError(code, "reason")


def test_a_full_database_is_a_full_disk(tmp_path):
    connection = sqlite3.connect(tmp_path / "small.sqlite")
    connection.execute("CREATE TABLE t (x)")
    connection.execute("PRAGMA max_page_count = 3")
    with pytest.raises(StoreError, match="disk is full"), store_errors(FOLDER):
        connection.execute("INSERT INTO t VALUES (?)", ("x" * 100_000,))
    connection.close()


def test_a_read_only_database_cannot_be_written(tmp_path):
    path = tmp_path / "fixed.sqlite"
    sqlite3.connect(path).execute("CREATE TABLE t (x)").connection.close()
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    with pytest.raises(StoreError, match="make it writable"), store_errors(FOLDER):
        connection.execute("INSERT INTO t VALUES (1)")
    connection.close()


def test_own_errors_pass_unchanged():
    with pytest.raises(RunHeld, match="^held$") as caught, store_errors(FOLDER):
        raise RunHeld("held")
    assert isinstance(caught.value, HotloopError)
