"""Judging: one verification, retried once when the machine was at fault.

A bad machine is never a verdict: the second failure in a row is raised, and the attempt stays
pending in the journal.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

from hotloop.core import kill_points
from hotloop.core.candidate import Candidate
from hotloop.core.verdict import Tier, Verdict
from hotloop.engine.lanes import Build
from hotloop.engine.session import Session
from hotloop.errors import InfraError, Pending

POLL_S = 0.2
"""How often a wait for a build looks at the budget, at the calls and at Ctrl-C."""


class BuildState(Enum):
    """What a wait for a build came to."""

    ENDED = auto()
    FAILED = auto()
    """The machine was at fault. The verification builds what is missing, and is the retry."""
    UNDER_WAY = auto()
    """Something else is to be done first."""


def await_build(
    session: Session, build: Build | None, *, until: Callable[[], bool] = lambda: False
) -> BuildState:
    """Wait for a build while the run may go on and `until` is false."""
    try:
        while build is not None and not build.wait(POLL_S):
            if session.why_stop() is not None or until():
                return BuildState.UNDER_WAY
    except InfraError as exc:
        _warn(session, exc)
        return BuildState.FAILED
    except Pending:
        return BuildState.ENDED  # built elsewhere: the verification says the same
    return BuildState.ENDED


def judge(session: Session, candidate: Candidate, tier: Tier, *, may_retry: bool = True) -> Verdict:
    """Return the candidate's verdict, and tell the meter how long it took.

    Raises:
        Pending: it is judged elsewhere, and its verdict has not come back yet.
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
    began_s = session.meter.spent_s()  # a stop of the process is no slow verification
    kill_points.reach("before-verify")
    verdict = session.parts.verifier.verify(candidate, tier)
    kill_points.reach("after-verify")
    session.meter.observe(tier, session.meter.spent_s() - began_s)
    return verdict


def _warn(session: Session, exc: InfraError) -> None:
    session.reporter.warning(f"{type(exc).__name__}: {exc}; trying once more")
