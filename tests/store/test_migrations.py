"""Journals of every released schema open, say what they said, and can be gone on with."""

import hashlib
import json
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from hotloop.core.verdict import Status, Tier
from hotloop.engine.result import StopReason, collect
from hotloop.errors import ForeignRun
from hotloop.llm.call_notes import CallNotes
from hotloop.store.migrations import MIGRATIONS, SCHEMA_VERSION, check_version, migrate
from hotloop.store.reader import RunReader
from hotloop.store.sqlite import JOURNAL_FILE, SqliteStore
from hotloop.testing.fakes import fake_verdict
from hotloop.testing.lease_suite import take
from hotloop.testing.store_suite import make_attempt

ASSETS = Path(__file__).parent / "assets"
STORED = sorted(path.name for path in ASSETS.iterdir() if path.is_dir())

RELEASED = {1: "a3baec079f31c3c4", 2: "04abcfbce4c2f455"}
"""The digest of each released step: an edited one would leave older journals as they are."""

NEXT = (
    *MIGRATIONS,
    (
        "ALTER TABLE attempts ADD COLUMN family TEXT",
        "UPDATE attempts SET family = 'unknown'",
        "CREATE TABLE families (name TEXT PRIMARY KEY)",
    ),
)
"""A step that is to come, for tests of how steps are made."""


def digest(step: tuple[str, ...]) -> str:
    return hashlib.sha256(json.dumps(step).encode()).hexdigest()[:16]


def events_of(folder: Path) -> list[tuple[int, str, str]]:
    connection = sqlite3.connect(folder / JOURNAL_FILE)
    rows = connection.execute("SELECT seq, kind, payload FROM events ORDER BY seq").fetchall()
    connection.close()
    return rows


def version_of(folder: Path) -> int:
    connection = sqlite3.connect(folder / JOURNAL_FILE)
    version = check_version(connection, folder, newest=len(NEXT))
    connection.close()
    return version


@pytest.fixture(params=STORED)
def folder(request, tmp_path):
    shutil.copytree(ASSETS / request.param, tmp_path / "run")
    return tmp_path / "run"


def test_every_released_schema_has_a_stored_run():
    versions = {int(re.match(r"schema_(\d+)_", name)[1]) for name in STORED}
    assert versions == set(RELEASED) == set(range(1, SCHEMA_VERSION + 1))


def test_a_released_step_is_never_edited():
    assert {n: digest(step) for n, step in enumerate(MIGRATIONS, start=1)} == RELEASED


def test_a_stored_run_is_read_whole_and_gone_on_with(folder):
    before = events_of(folder)
    with SqliteStore(folder) as store:
        attempts = list(store.attempts())
        assert attempts
        assert all(a.verdict is not None for a in attempts)
        for attempt in attempts:
            if attempt.candidate_id is not None:
                assert store.candidate(attempt.candidate_id).id == attempt.candidate_id
        result = collect(store, StopReason.CANDIDATES)
        assert result.passed
        assert result.final.status is Status.PASSED
        CallNotes(store)
        spent_s = store.spent_s()
        store.rebuild()
        assert (list(store.attempts()), store.spent_s()) == (attempts, spent_s)
        store.propose(*make_attempt(99))
    assert version_of(folder) == SCHEMA_VERSION
    assert events_of(folder)[:-1] == before
    with RunReader(folder) as reader:
        assert len(reader.attempts()) == len(attempts) + 1
        assert reader.spec().problem_id == reader.problem().id


def test_a_run_of_before_there_were_leases_is_read_as_it_is_and_gone_on_with(tmp_path):
    shutil.copytree(ASSETS / "schema_1_first", tmp_path / "run")
    with RunReader(tmp_path / "run") as reader:
        attempts = list(reader.attempts())
        assert reader.spec().problem_id == reader.problem().id
    assert version_of(tmp_path / "run") == 1, "reading changes nothing"
    with SqliteStore(tmp_path / "run") as store:
        for attempt in attempts:
            assert store.leases.verdict(attempt.candidate_id, Tier.FAST) == attempt.verdict
        lease = take(store, "new")
        assert (lease.epoch, lease.attempt) == (1, 1)
        assert store.leases.deliver(lease.epoch, fake_verdict(1.0, "new"))


def test_leases_of_an_earlier_session_are_taken_over(tmp_path):
    shutil.copytree(ASSETS / "schema_2_leases", tmp_path / "run")
    with SqliteStore(tmp_path / "run") as store:
        apart = next(a for a in store.attempts() if a.verdict.status is Status.INCONCLUSIVE)
        assert len(store.leases.failures(apart.candidate_id, Tier.FAST)) == 3
        first = store.attempts()[0]
        assert store.leases.verdict(first.candidate_id, Tier.FAST) == first.verdict
        assert take(store, "new").epoch > 8


def test_a_step_to_come_keeps_what_is_there(folder):
    before = events_of(folder)
    connection = sqlite3.connect(folder / JOURNAL_FILE, isolation_level=None)
    migrate(connection, folder, migrations=NEXT)
    families = connection.execute("SELECT DISTINCT family FROM attempts").fetchall()
    connection.close()
    assert (version_of(folder), families) == (len(NEXT), [("unknown",)])
    assert events_of(folder) == before
    with pytest.raises(ForeignRun, match="newer hotloop"):
        SqliteStore(folder)


def test_a_step_that_fails_leaves_the_journal_as_it_was(folder):
    broken = (*MIGRATIONS, (*NEXT[-1], "INSERT INTO nowhere VALUES (1)"))
    connection = sqlite3.connect(folder / JOURNAL_FILE, isolation_level=None)
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        migrate(connection, folder, migrations=broken)
    connection.close()
    assert version_of(folder) == SCHEMA_VERSION
    SqliteStore(folder).close()


MIGRATE = """
import sqlite3, sys
from pathlib import Path
sys.path.insert(0, {here!r})
from test_migrations import NEXT
from hotloop.core import kill_points
from hotloop.store.migrations import migrate
kill_points.act_with(kill_points.at(sys.argv[2], kill_points.die))
folder = Path(sys.argv[1])
connection = sqlite3.connect(folder / "journal.sqlite", isolation_level=None)
connection.execute("PRAGMA journal_mode = WAL")
migrate(connection, folder, migrations=NEXT)
"""


@pytest.mark.parametrize(
    ("point", "version"),
    [
        ("before-migration:1", SCHEMA_VERSION),
        ("inside-migration:1", SCHEMA_VERSION),
        ("inside-migration:3", SCHEMA_VERSION),
        ("after-migration:1", len(NEXT)),
    ],
)
def test_a_kill_in_a_step_leaves_all_of_it_or_nothing(tmp_path, point, version):
    folder = tmp_path / "run"
    shutil.copytree(ASSETS / STORED[-1], folder)
    before = events_of(folder)
    program = MIGRATE.format(here=str(Path(__file__).parent))
    child = subprocess.run(
        [sys.executable, "-c", program, str(folder), point],
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == -signal.SIGKILL, child.stderr
    assert version_of(folder) == version
    connection = sqlite3.connect(folder / JOURNAL_FILE, isolation_level=None)
    migrate(connection, folder, migrations=NEXT)
    connection.close()
    assert (version_of(folder), events_of(folder)) == (len(NEXT), before)
