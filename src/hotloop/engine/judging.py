"""Judging: one evaluation, sent again when the machine was at fault.

A bad machine is never a verdict. What it fails at `MAX_TRIES` times, over all sessions, is set
apart as not judged, and the run goes on, if the same machine can still load the problem and judges
others in between. Else it is the machine: the error is raised, the attempt stays pending in the
journal, and whoever mends the machine starts with a clean count. So does a later session with what
was set apart at the final tier: it is asked for again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto

from hotloop.core.candidate import Candidate
from hotloop.core.finals import is_enough
from hotloop.core.verdict import Tier, Verdict
from hotloop.engine.elsewhere import not_judged
from hotloop.engine.evaluation import MISSED, Evaluation
from hotloop.engine.lanes import Build
from hotloop.engine.session import Session
from hotloop.errors import InfraError, Pending

POLL_S = 0.2
"""How often a wait for a build looks at the budget, at the calls and at Ctrl-C."""

MAX_TRIES = 3
"""Leases of one candidate at one tier that may fail before it is set apart."""


class BuildState(Enum):
    """What a wait for a build came to."""

    ENDED = auto()
    """Also where the machine was at fault: the verification builds what is missing."""
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
    except Pending:
        pass  # built elsewhere: the verification says the same
    return BuildState.ENDED


def judge(session: Session, candidate: Candidate, tier: Tier, *, may_retry: bool = True) -> Verdict:
    """Return the candidate's verdict, and tell the meter how long it took.

    A verdict that came in before a crash is returned as it is, unless it is short and the run asks
    for the full final tier. A candidate that the machine failed at too often gets INCONCLUSIVE.

    Raises:
        Pending: it is judged elsewhere, and its verdict has not come back yet.
        InfraError: the machine is at fault, or it failed and no time is left for a retry.
    """
    leases = session.parts.store.leases
    known = leases.verdict(candidate.id, tier)
    if known is not None:
        if is_enough(known, wants_full=not session.spec.has_short_final):
            return known
        leases.set_aside(candidate.id, tier, "it is short, and the full final tier is asked for")
    last: InfraError | None = None
    while len(failures := leases.failures(candidate.id, tier)) < MAX_TRIES:
        try:
            verdict = _evaluate(session, candidate, tier)
        except InfraError as exc:
            if not may_retry or (tier is Tier.FAST and session.meter.remaining_s() <= 0):
                raise
            last = exc
            if len(failures) + 1 < MAX_TRIES:
                _warn(session, exc)
        else:
            session.set_apart.clear()
            return verdict
    return _set_apart(session, candidate, tier, failures, last)


def _evaluate(session: Session, candidate: Candidate, tier: Tier) -> Verdict:
    parts, meter = session.parts, session.meter
    began_s = meter.spent_s()  # a stop of the process is no slow verification
    lease = parts.store.leases.lease(
        candidate.id,
        tier,
        judge=f"{type(parts.verifier).__name__} ({session.info.device})",
        ttl_s=MISSED * parts.heartbeat_s,
    )
    try:
        verdict = Evaluation(parts.store, parts.verifier, candidate, lease).verdict(
            parts.heartbeat_s
        )
    except Exception as exc:
        parts.store.leases.end_lease(lease.epoch, _why(exc), is_failure=_is_failure(exc))
        raise
    except KeyboardInterrupt:
        parts.store.leases.end_lease(lease.epoch, "the user stopped the run", is_failure=False)
        raise
    meter.observe(tier, meter.spent_s() - began_s)
    return verdict


def _set_apart(
    session: Session,
    candidate: Candidate,
    tier: Tier,
    failures: Sequence[str],
    last: InfraError | None,
) -> Verdict:
    """Return that the candidate was not judged, if the machine is fit for others.

    Raises:
        InfraError: it is not.
    """
    if session.set_apart:
        others = ", ".join(session.set_apart)
        raise last or InfraError(
            f"candidate {candidate.id} failed as {others} before it did, and nothing was judged in "
            f"between: {failures[-1]}; see judge.log in the run folder, mend the machine, then run "
            "again"
        )
    session.parts.verifier.load(session.problem)  # raises what is wrong with the machine
    session.set_apart.append(candidate.id)
    why = f"the judge failed {len(failures)} times, last: {failures[-1]}"
    session.reporter.warning(f"candidate {candidate.id} is not judged ({tier.value}): {why}")
    if tier is Tier.FINAL:  # no answer: the next session tries as often
        session.parts.store.leases.set_aside(candidate.id, tier, "it is asked for again")
    return not_judged(session, candidate.id, tier, why)


def _why(exc: Exception) -> str:
    return f"{type(exc).__name__}: {exc}"


def _is_failure(exc: Exception) -> bool:
    return isinstance(exc, InfraError)


def _warn(session: Session, exc: InfraError) -> None:
    session.reporter.warning(f"{type(exc).__name__}: {exc}; trying once more")
