"""MemoryLeases: the contract of `core.lease.LeaseBook` without a disk."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from hotloop.core.lease import Lease
from hotloop.core.verdict import Tier, Verdict
from hotloop.store.leases import ENDED, JUDGED, LEFT_OPEN, OPEN


@dataclass(slots=True)
class _Entry:
    lease: Lease
    state: str = OPEN
    failure: str | None = None
    result: Verdict | None = None


class MemoryLeases:
    """Keeps leases while the process lives; safe to use from any thread."""

    def __init__(self, earlier: Callable[[str], Verdict | None]) -> None:
        """Take what returns the verdict of a candidate that an attempt was concluded with."""
        self._mutex = threading.RLock()
        self._earlier = earlier
        self._entries: list[_Entry] = []

    def lease(self, candidate_id: str, tier: Tier, *, judge: str, ttl_s: float) -> Lease:
        """Open a lease. See `core.lease.LeaseBook`."""
        with self._mutex:
            if self.verdict(candidate_id, tier) is not None:
                raise ValueError(f"candidate {candidate_id} has its verdict ({tier.value}) already")
            earlier = self._of(candidate_id, tier)
            for entry in earlier:
                self.end_lease(entry.lease.epoch, LEFT_OPEN, is_failure=True)
            lease = Lease(
                epoch=len(self._entries) + 1,
                candidate_id=candidate_id,
                tier=tier,
                attempt=len(earlier) + 1,
            )
            self._entries.append(_Entry(lease))
            return lease

    def renew(self, epoch: int, *, ttl_s: float) -> bool:
        """Say that the judge still answers. See `core.lease.LeaseBook`."""
        with self._mutex:
            return self._entries[epoch - 1].state == OPEN

    def end_lease(self, epoch: int, why: str, *, is_failure: bool) -> bool:
        """End a lease without a result. See `core.lease.LeaseBook`."""
        with self._mutex:
            entry = self._entries[epoch - 1]
            if entry.state != OPEN:
                return False
            entry.state = ENDED
            entry.failure = why if is_failure else None
            return True

    def deliver(self, epoch: int, verdict: Verdict) -> bool:
        """Take in a result. See `core.lease.LeaseBook`."""
        with self._mutex:
            entry = self._entries[epoch - 1] if 0 < epoch <= len(self._entries) else None
            key = (verdict.candidate_id, verdict.tier)
            if entry is None or (entry.lease.candidate_id, entry.lease.tier) != key:
                raise ValueError(f"epoch {epoch} is not of candidate {key[0]} ({key[1].value})")
            if entry.result is None:
                entry.result = verdict
                entry.state = JUDGED if entry.state == OPEN else ENDED
            return entry.state == JUDGED

    def verdict(self, candidate_id: str, tier: Tier) -> Verdict | None:
        """Return the accepted verdict. See `core.lease.LeaseBook`."""
        with self._mutex:
            found = [e.result for e in self._of(candidate_id, tier) if e.state == JUDGED]
        if found:
            return found[0]
        return self._earlier(candidate_id) if tier is Tier.FAST else None

    def set_aside(self, candidate_id: str, tier: Tier, why: str) -> None:
        """Accept another verdict than the one there is. See `core.lease.LeaseBook`."""
        with self._mutex:
            for entry in self._of(candidate_id, tier):
                entry.state, entry.failure = ENDED, None

    def failures(self, candidate_id: str, tier: Tier) -> tuple[str, ...]:
        """Return why leases failed. See `core.lease.LeaseBook`."""
        with self._mutex:
            whys = [
                LEFT_OPEN if entry.state == OPEN else entry.failure
                for entry in self._of(candidate_id, tier)
            ]
        return tuple(why for why in whys if why is not None)

    def forgive(self) -> None:
        """Count no failure of before: somebody has seen to the machine."""
        with self._mutex:
            for entry in self._entries:
                entry.failure = None

    def _of(self, candidate_id: str, tier: Tier) -> list[_Entry]:
        key = (candidate_id, tier)
        return [e for e in self._entries if (e.lease.candidate_id, e.lease.tier) == key]
