"""LeaseSuite: what every store's leases have to do."""

# ruff: noqa: D102  the name of a test says what it checks

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hotloop.core.lease import Lease
from hotloop.core.protocols import Store
from hotloop.core.verdict import Status, Tier
from hotloop.testing.fakes import fake_verdict, make_problem, make_spec
from hotloop.testing.store_suite import conclude, make_attempt

TTL_S = 60.0


class LeaseSuite:
    """What every store's leases have to do."""

    def make(self, folder: Path) -> Any:
        """Return an empty store; `folder` is free for it to use."""
        raise NotImplementedError("a subclass of LeaseSuite returns its store here")

    @pytest.fixture
    def store(self, tmp_path: Path) -> Any:
        """Return a store whose run has begun."""
        store = self.make(tmp_path / "run")
        store.begin(make_spec(make_problem()), make_problem())
        yield store
        if hasattr(store, "close"):
            store.close()

    def test_each_lease_has_an_epoch_and_counts_its_tries(self, store: Store) -> None:
        first = take(store, "a")
        store.leases.end_lease(first.epoch, "it died", is_failure=True)
        again, other = take(store, "a"), take(store, "b")
        final = take(store, "a", Tier.FINAL)
        epochs = [lease.epoch for lease in (first, again, other, final)]
        assert epochs == sorted(set(epochs))
        assert [lease.attempt for lease in (first, again, other, final)] == [1, 2, 1, 1]

    def test_a_result_in_time_is_the_verdict(self, store: Store) -> None:
        lease = take(store, "a")
        assert store.leases.verdict("a", Tier.FAST) is None
        verdict = fake_verdict(1.5, "a")
        assert store.leases.deliver(lease.epoch, verdict)
        assert store.leases.verdict("a", Tier.FAST) == verdict
        assert store.leases.verdict("a", Tier.FINAL) is None
        assert store.leases.failures("a", Tier.FAST) == ()

    def test_a_result_that_comes_three_times_counts_once(self, store: Store) -> None:
        lease = take(store, "a")
        verdict = fake_verdict(1.5, "a")
        assert [store.leases.deliver(lease.epoch, verdict) for _ in range(3)] == [True] * 3
        other = fake_verdict(0.1, "a")
        assert store.leases.deliver(lease.epoch, other)
        assert store.leases.verdict("a", Tier.FAST) == verdict, "the first one stands"

    def test_another_result_is_accepted_once_the_first_is_set_aside(self, store: Store) -> None:
        lease, short = take(store, "a", Tier.FINAL), fake_verdict(1.5, "a", tier=Tier.FINAL)
        store.leases.deliver(lease.epoch, short)
        with pytest.raises(ValueError, match="has its verdict"):
            take(store, "a", Tier.FINAL)
        store.leases.set_aside("a", Tier.FINAL, "it is short")
        assert store.leases.verdict("a", Tier.FINAL) is None
        assert store.leases.failures("a", Tier.FINAL) == ()
        again, full = take(store, "a", Tier.FINAL), fake_verdict(1.6, "a", tier=Tier.FINAL)
        assert not store.leases.deliver(lease.epoch, short), "its word is over"
        assert store.leases.deliver(again.epoch, full)
        assert store.leases.verdict("a", Tier.FINAL) == full
        store.leases.set_aside("b", Tier.FINAL, "there is none: nothing happens")

    def test_what_is_set_aside_starts_with_a_clean_count(self, store: Store) -> None:
        for candidate_id in "ab":
            lease = take(store, candidate_id)
            store.leases.end_lease(lease.epoch, "signal 9", is_failure=True)
            take(store, candidate_id)  # its session died
        assert len(store.leases.failures("a", Tier.FAST)) == 2
        store.leases.set_aside("a", Tier.FAST, "it is asked for again")
        assert store.leases.failures("a", Tier.FAST) == ()
        assert len(store.leases.failures("b", Tier.FAST)) == 2, "another one's count"
        verdict = fake_verdict(1.5, "a")
        assert store.leases.deliver(take(store, "a").epoch, verdict)
        assert store.leases.verdict("a", Tier.FAST) == verdict

    def test_a_result_after_the_end_is_not_scored(self, store: Store) -> None:
        late = take(store, "a")
        assert store.leases.end_lease(late.epoch, "silent", is_failure=True)
        assert not store.leases.deliver(late.epoch, fake_verdict(0.1, "a"))
        assert store.leases.verdict("a", Tier.FAST) is None
        lease = take(store, "a")
        assert [store.leases.deliver(late.epoch, fake_verdict(0.1, "a"))] * 3 == [False] * 3
        verdict = fake_verdict(Status.INCORRECT_NUMERICAL, "a")
        assert store.leases.deliver(lease.epoch, verdict)
        assert not store.leases.deliver(late.epoch, fake_verdict(0.1, "a"))
        assert store.leases.verdict("a", Tier.FAST) == verdict

    def test_a_lease_that_a_dead_session_left_counts_as_a_failure(self, store: Store) -> None:
        dead = take(store, "a")
        assert store.leases.failures("a", Tier.FAST) == ("the run was killed during it",)
        lease = take(store, "a")
        assert len(store.leases.failures("a", Tier.FAST)) == 2
        assert not store.leases.deliver(dead.epoch, fake_verdict(0.1, "a"))
        assert store.leases.deliver(lease.epoch, fake_verdict(1.5, "a"))
        assert len(store.leases.failures("a", Tier.FAST)) == 1

    def test_an_end_that_is_no_failure_does_not_count(self, store: Store) -> None:
        lease = take(store, "a")
        assert store.leases.end_lease(lease.epoch, "awaited from outside", is_failure=False)
        assert store.leases.failures("a", Tier.FAST) == ()
        assert take(store, "a").attempt == 2

    def test_failures_before_somebody_saw_to_the_machine_do_not_count(self, store: Store) -> None:
        for why in ("first", "second"):
            store.leases.end_lease(take(store, "a").epoch, why, is_failure=True)
        assert store.leases.failures("a", Tier.FAST) == ("first", "second")
        store.note("stopped", {"reason": "wall", "budget": {}, "message": None})
        assert len(store.leases.failures("a", Tier.FAST)) == 2
        store.note("stopped", {"reason": "failed", "budget": {}, "message": None})
        assert store.leases.failures("a", Tier.FAST) == ()

    def test_a_lease_that_is_over_is_neither_renewed_nor_ended(self, store: Store) -> None:
        lease = take(store, "a")
        assert store.leases.renew(lease.epoch, ttl_s=TTL_S)
        store.leases.deliver(lease.epoch, fake_verdict(1.5, "a"))
        assert not store.leases.renew(lease.epoch, ttl_s=TTL_S)
        assert not store.leases.end_lease(lease.epoch, "too late", is_failure=True)
        assert store.leases.failures("a", Tier.FAST) == ()

    def test_what_has_its_verdict_is_not_leased_again(self, store: Store) -> None:
        store.leases.deliver(take(store, "a").epoch, fake_verdict(1.5, "a"))
        with pytest.raises(ValueError, match="already"):
            take(store, "a")

    def test_an_attempt_of_before_there_were_leases_has_its_verdict(self, store: Store) -> None:
        attempt, candidate = make_attempt(1)
        store.propose(attempt, candidate)
        assert store.leases.verdict(candidate.id, Tier.FAST) is None
        concluded = conclude(attempt)
        store.conclude(concluded)
        assert store.leases.verdict(candidate.id, Tier.FAST) == concluded.verdict
        assert store.leases.verdict(candidate.id, Tier.FINAL) is None

    def test_a_result_of_something_else_is_refused(self, store: Store) -> None:
        lease = take(store, "a")
        with pytest.raises(ValueError, match="epoch"):
            store.leases.deliver(lease.epoch, fake_verdict(1.5, "b"))
        with pytest.raises(ValueError, match="epoch"):
            store.leases.deliver(lease.epoch, fake_verdict(1.5, "a", tier=Tier.FINAL))
        with pytest.raises(ValueError, match="epoch"):
            store.leases.deliver(lease.epoch + 1, fake_verdict(1.5, "a"))

    @pytest.mark.parametrize("kind", ["leased", "renewed", "ended", "judged", "judged_late"])
    def test_its_own_kinds_are_reserved(self, store: Store, kind: str) -> None:
        with pytest.raises(ValueError, match=kind):
            store.note(kind, {})


def take(store: Store, candidate_id: str, tier: Tier = Tier.FAST) -> Lease:
    """Open a lease of a fake judge."""
    return store.leases.lease(candidate_id, tier, judge="a fake", ttl_s=TTL_S)
