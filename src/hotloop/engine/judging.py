"""Judging: one verification, retried once when the machine was at fault.

A bad machine is never a verdict: the second failure in a row is raised, and the attempt stays
pending in the journal.
"""

from __future__ import annotations

from hotloop.core.candidate import Candidate
from hotloop.core.verdict import Tier, Verdict
from hotloop.engine.lanes import Build
from hotloop.engine.session import Session
from hotloop.errors import InfraError

POLL_S = 0.2
"""How often a wait for a build looks at the budget and at Ctrl-C."""


def await_build(session: Session, build: Build | None) -> bool:
    """Wait for a build while the run may go on; return whether the machine did its part.

    A build that the machine failed is left to the verification: it builds what is missing, and
    counts as the retry.
    """
    try:
        while build is not None and not build.wait(POLL_S):
            if session.why_stop() is not None:
                return False
    except InfraError as exc:
        _warn(session, exc)
        return False
    return True


def judge(session: Session, candidate: Candidate, tier: Tier, *, may_retry: bool = True) -> Verdict:
    """Return the candidate's verdict, and tell the meter how long it took.

    Raises:
        InfraError: the machine failed twice, or once when no time is left for a retry.
    """
    try:
        return _timed(session, candidate, tier)
    except InfraError as exc:
        if not may_retry or (tier is Tier.FAST and session.meter.remaining_s() <= 0):
            raise
        _warn(session, exc)
    return _timed(session, candidate, tier)


def _timed(session: Session, candidate: Candidate, tier: Tier) -> Verdict:
    began_s = session.clock()
    verdict = session.parts.verifier.verify(candidate, tier)
    session.meter.observe(tier, session.clock() - began_s)
    return verdict


def _warn(session: Session, exc: InfraError) -> None:
    session.reporter.warning(f"{type(exc).__name__}: {exc}; trying once more")
