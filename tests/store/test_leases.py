"""Leases in both journals, and what a process that takes over finds of them."""

import sqlite3

import pytest

from hotloop.core.verdict import Tier
from hotloop.errors import StoreError
from hotloop.store.memory import MemoryStore
from hotloop.store.reader import RunReader
from hotloop.store.sqlite import SqliteStore
from hotloop.testing.fakes import fake_verdict, make_problem, make_spec
from hotloop.testing.lease_suite import LeaseSuite, take


class TestMemoryLeases(LeaseSuite):
    def make(self, folder):
        return MemoryStore()


class TestSqliteLeases(LeaseSuite):
    def make(self, folder):
        return SqliteStore(folder)


def begun(folder) -> SqliteStore:
    store = SqliteStore(folder)
    store.begin(make_spec(make_problem()), make_problem())
    return store


def lease_events(folder) -> list[tuple[str, int]]:
    with RunReader(folder) as reader:
        return [(e.kind, e.payload["epoch"]) for e in reader.events() if "epoch" in e.payload]


def test_a_result_for_a_coordinator_that_was_replaced_is_kept_and_not_scored(tmp_path):
    with begun(tmp_path / "run") as store:
        of_the_dead = take(store, "a")
    with begun(tmp_path / "run") as store:
        mine = take(store, "a")
        assert (mine.attempt, mine.epoch > of_the_dead.epoch) == (2, True)
        for _ in range(3):
            assert not store.leases.deliver(of_the_dead.epoch, fake_verdict(0.1, "a"))
        assert store.leases.deliver(mine.epoch, fake_verdict(1.5, "a"))
    assert lease_events(tmp_path / "run") == [
        ("leased", 1), ("ended", 1), ("leased", 2), ("judged_late", 1), ("judged", 2),
    ]  # fmt: skip


def test_leases_can_be_rebuilt_from_events(tmp_path):
    with begun(tmp_path / "run") as store:
        store.leases.deliver(take(store, "a").epoch, fake_verdict(1.5, "a"))
        late = take(store, "b")
        store.leases.renew(late.epoch, ttl_s=5.0)
        store.leases.end_lease(late.epoch, "silent", is_failure=True)
        store.leases.deliver(late.epoch, fake_verdict(1.5, "b"))
        take(store, "c", Tier.FINAL)
        before = table(store)
        store.rebuild()
        assert table(store) == before
        assert store.leases.verdict("a", Tier.FAST) == fake_verdict(1.5, "a")
        store.note("stopped", {"reason": "failed", "budget": {}, "message": None})
        forgiven = table(store)
        store.rebuild()
        assert table(store) == forgiven != before


def table(store):
    return store._connection.execute("SELECT * FROM leases ORDER BY epoch").fetchall()


def test_the_database_itself_refuses_a_second_verdict(tmp_path):
    with begun(tmp_path / "run") as store:
        store.leases.deliver(take(store, "a").epoch, fake_verdict(1.5, "a"))
        with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
            store._connection.execute(
                "INSERT INTO leases VALUES (9, 'a', 'fast', 9, '', 0, 'judged', NULL, NULL)"
            )


def test_a_result_for_a_run_that_is_closed_is_an_error_of_the_store(tmp_path):
    store = begun(tmp_path / "run")
    lease = take(store, "a")
    store.close()
    with pytest.raises(StoreError):
        store.leases.deliver(lease.epoch, fake_verdict(1.5, "a"))
