"""SqliteLeases: the journal's `core.lease.LeaseBook`."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from hotloop.core import kill_points
from hotloop.core.lease import Lease
from hotloop.core.record import to_json
from hotloop.core.verdict import Tier, Verdict
from hotloop.store import leases, rows

Transaction = Callable[[], AbstractContextManager[sqlite3.Connection]]
"""Opens a transaction of the one writer and yields its connection."""


class SqliteLeases:
    """Writes leases and results; safe to use from any thread."""

    def __init__(self, transaction: Transaction, reading: Transaction) -> None:
        """Take what opens a transaction, and what only keeps other threads out."""
        self._transaction = transaction
        self._reading = reading

    def lease(self, candidate_id: str, tier: Tier, *, judge: str, ttl_s: float) -> Lease:
        """Open a lease. See `core.lease.LeaseBook`."""
        kill_points.reach("before-lease")
        now_s = time.time()
        with self._transaction() as connection:
            for epoch in leases.epochs(connection, candidate_id, tier):
                _append(connection, "ended", _ended(epoch, leases.LEFT_OPEN, is_failure=True))
            payload = leases.new_lease(connection, candidate_id, tier, judge, now_s + ttl_s)
            _append(connection, "leased", payload)
        kill_points.reach("after-lease")
        return leases.lease_of(payload)

    def renew(self, epoch: int, *, ttl_s: float) -> bool:
        """Say that the judge still answers. See `core.lease.LeaseBook`."""
        return self._if_open("renewed", {"epoch": epoch, "expires_at": time.time() + ttl_s})

    def end_lease(self, epoch: int, why: str, *, is_failure: bool) -> bool:
        """End a lease without a result. See `core.lease.LeaseBook`."""
        return self._if_open("ended", _ended(epoch, why, is_failure=is_failure))

    def deliver(self, epoch: int, verdict: Verdict) -> bool:
        """Take in a result. See `core.lease.LeaseBook`."""
        kill_points.reach("before-result")
        with self._transaction() as connection:
            kind = leases.event_of_result(connection, epoch, verdict)
            if kind is not None:
                _append(connection, kind, {"epoch": epoch, "verdict": to_json(verdict)})
            is_accepted = leases.is_accepted(connection, epoch)
        kill_points.reach("after-result")
        return is_accepted

    def verdict(self, candidate_id: str, tier: Tier) -> Verdict | None:
        """Return the accepted verdict. See `core.lease.LeaseBook`."""
        with self._reading() as connection:
            return leases.read_verdict(connection, candidate_id, tier)

    def set_aside(self, candidate_id: str, tier: Tier, why: str) -> None:
        """Accept another verdict than the one there is. See `core.lease.LeaseBook`."""
        with self._transaction() as connection:
            for epoch in leases.epochs_that_count(connection, candidate_id, tier):
                _append(connection, "ended", _ended(epoch, why, is_failure=False))

    def failures(self, candidate_id: str, tier: Tier) -> tuple[str, ...]:
        """Return why leases failed. See `core.lease.LeaseBook`."""
        with self._reading() as connection:
            return leases.read_failures(connection, candidate_id, tier)

    def _if_open(self, kind: str, payload: Mapping[str, Any]) -> bool:
        with self._transaction() as connection:
            is_open = leases.is_lease_open(connection, payload["epoch"])
            if is_open:
                _append(connection, kind, payload)
        return is_open


def _append(connection: sqlite3.Connection, kind: str, payload: Mapping[str, Any]) -> None:
    rows.append_event(connection, kind, payload, time.time())


def _ended(epoch: int, why: str, *, is_failure: bool) -> dict[str, Any]:
    return {"epoch": epoch, "why": why, "is_failure": is_failure}
