"""Lease: the right to have one candidate verified at one tier, and the journal's side of it.

A lease is written before a candidate is sent to a judge, so that a candidate that takes the whole
machine down is counted. Its epoch is a number that no other lease of the run has: a result that
comes back under an epoch that is over is kept and not scored. A journal holds one problem, so
candidate, tier and attempt name an evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hotloop.core.verdict import Tier, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """One verification that may be under way."""

    epoch: int
    """From 1; grows with every lease of the run."""
    candidate_id: str
    tier: Tier
    attempt: int
    """How often this candidate was sent at this tier, this time included."""


class LeaseBook(Protocol):
    """What a journal knows of verifications under way. Every call returns after it is durable."""

    def lease(self, candidate_id: str, tier: Tier, *, judge: str, ttl_s: float) -> Lease:
        """Open a lease. One that a dead session left open ends here, as a failure.

        Args:
            candidate_id: what is sent.
            tier: how thoroughly it is verified.
            judge: who verifies it, for whoever reads the journal.
            ttl_s: seconds for which nobody should wonder; `renew` adds to them.

        Raises:
            ValueError: it has its verdict already.
        """

    def renew(self, epoch: int, *, ttl_s: float) -> bool:
        """Say that the judge still answers; False when the lease is over."""

    def end_lease(self, epoch: int, why: str, *, is_failure: bool) -> bool:
        """End a lease without a result; False when it is over already.

        Args:
            epoch: which one.
            why: what happened.
            is_failure: whether it counts against the evaluation; an answer that is awaited from
                outside, or a user who stops the run, does not.
        """

    def deliver(self, epoch: int, verdict: Verdict) -> bool:
        """Take in a result; return whether it is the accepted one. Idempotent.

        A result of a lease that is over is kept in the journal once and does not count.

        Raises:
            ValueError: there was no such lease, or it was of another candidate or tier.
        """

    def verdict(self, candidate_id: str, tier: Tier) -> Verdict | None:
        """Return the accepted verdict; None when there is none yet."""

    def set_aside(self, candidate_id: str, tier: Tier, why: str) -> None:
        """Accept another verdict in place of the one that there is, and count no failure of before.

        All of it stays in the journal.

        Args:
            candidate_id: what is to be judged once more.
            tier: how thoroughly.
            why: what the verdict lacks, or why there is to be one yet.
        """

    def failures(self, candidate_id: str, tier: Tier) -> tuple[str, ...]:
        """Return why leases of an evaluation failed, oldest first.

        One that is still open counts: its session is dead, or nobody would ask. Those before a
        session that ended with an error do not: somebody has seen to the machine since.
        """
