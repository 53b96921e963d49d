"""The loop: ask, generate, build ahead, verify one at a time, tell; then the final tier.

It decides when to go on and nothing else: what to try is the strategy's, how long is the meter's,
what is true is the verifier's, what happened is the store's.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from hotloop.core.attempt import RunSpec
from hotloop.core.event import Event, Listener
from hotloop.core.problem import Problem
from hotloop.core.verdict import Tier
from hotloop.engine.final import run_final_tier
from hotloop.engine.judging import await_build, judge
from hotloop.engine.lanes import Lanes
from hotloop.engine.limits import Meter
from hotloop.engine.outcomes import Outcomes
from hotloop.engine.pipeline import Pipeline
from hotloop.engine.reporter import Reporter
from hotloop.engine.result import RunResult, StopReason, collect, stored_result
from hotloop.engine.session import Parts, Session
from hotloop.engine.stop import StopFlag
from hotloop.errors import HotloopError, StoreError

SLOW_FRAC = 0.5
"""A verification that takes this much of the whole budget is named where the run stops."""


def run_search(
    problem: Problem,
    parts: Parts,
    *,
    spec: RunSpec,
    listen: Listener = lambda event: None,
    clock: Callable[[], float] = time.monotonic,
    stop: StopFlag | None = None,
) -> RunResult:
    """Search until budget, strategy or user end it, going on where the store left off.

    A run with nothing left to do returns its stored result without loading the problem. A
    KeyboardInterrupt ends the run at once and returns what it came to.

    Raises:
        ForeignRun: the store holds another run.
        ProblemError: the problem is broken, or no generator covers it.
        InfraError: the machine failed twice in a row; the journal keeps everything.
        StoreError: the journal cannot be written.
    """
    parts.store.begin(spec, problem)
    stored = stored_result(parts.store, spec)
    if stored is not None:
        listen(Event(kind="stopped", payload={"reason": stored.reason, "message": stored.detail}))
        return stored
    reporter = Reporter(parts.store, listen)
    began_s = clock()
    info = parts.verifier.load(problem)
    reporter.setup(info, clock() - began_s)
    meter = Meter(spec.budget, parts.store, clock=clock, has_final=spec.device != "cpu")
    session = Session(
        parts=parts,
        spec=spec,
        info=info,
        meter=meter,
        reporter=reporter,
        clock=clock,
        stop=stop or StopFlag(),
    )
    with meter:
        reason = _run(session)
    detail = _overrun(session) if reason is StopReason.WALL else None
    reporter.stopped(reason, spec.budget, message=detail)
    return collect(parts.store, reason, detail)


def _run(session: Session) -> StopReason:
    """Search, then verify the best at the final tier; return why it ended."""
    try:
        with Lanes(session.parts.verifier.build, session.parts.lanes) as lanes:
            reason = _search(session, lanes)
            if session.has_final and not session.stop.now:
                lanes.close()
                run_final_tier(session)
    except KeyboardInterrupt:
        return StopReason.INTERRUPTED
    except StoreError:
        raise  # the journal itself failed: there is nowhere to note it
    except HotloopError as exc:
        session.reporter.stopped(StopReason.FAILED, session.spec.budget, message=str(exc))
        raise
    return StopReason.INTERRUPTED if session.stop.draining else reason


def _search(session: Session, lanes: Lanes) -> StopReason:
    """Verify candidates at the fast tier until something ends it; return what did."""
    parts = session.parts
    earlier = parts.store.attempts()
    strategy = parts.strategy(parts.generator.space(session.info), session.spec.seed)
    strategy.restore(earlier)
    outcomes = Outcomes(session, strategy, earlier)
    pipeline = Pipeline(session, strategy, lanes, earlier=earlier, is_known=outcomes.is_known)
    while (reason := session.why_stop()) is None:
        pending = pipeline.head()
        if pending is None:
            return pipeline.why_empty()
        verdict = outcomes.known(pending.candidate.id)
        if verdict is None:
            is_built = await_build(session, pending.build)
            if session.why_stop() is not None:
                continue  # the wait used up the budget, or the user stopped it
            session.reporter.tell("verifying", attempt=pending.attempt)
            verdict = judge(session, pending.candidate, Tier.FAST, may_retry=is_built)
        outcomes.conclude(pending.attempt, verdict)
        pipeline.pop()
    return reason


def _overrun(session: Session) -> str | None:
    """Say what used up a budget that gave room to one verification or none."""
    limit_s, longest_s = session.spec.budget.wall_s or 0.0, session.meter.longest_fast_s()
    if longest_s is None:
        return "before a verification could start"
    if longest_s < SLOW_FRAC * limit_s:
        return None
    return f"one verification took {longest_s:.0f} s of a budget of {limit_s:.0f} s"
