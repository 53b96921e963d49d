"""A run: load the problem, search at the fast tier, then the final tier; and how it ended.

It decides what comes next and nothing else: what to try is the strategy's, how long is the meter's,
what is true is the verifier's, what happened is the store's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from hotloop.core.attempt import RunSpec
from hotloop.core.event import Event, Listener
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.protocols import Verifier
from hotloop.engine.calls import Calls
from hotloop.engine.elsewhere import note_closing
from hotloop.engine.ending import Ending
from hotloop.engine.final import run_final_tier
from hotloop.engine.lanes import Lanes
from hotloop.engine.limits import Meter
from hotloop.engine.reporter import Reporter
from hotloop.engine.result import RunResult, StopReason, collect, stored_result
from hotloop.engine.search import fast_tier
from hotloop.engine.session import Parts, Session
from hotloop.engine.stop import StopFlag
from hotloop.engine.turns import pause_by, waited_s
from hotloop.errors import HotloopError, Pending, StoreError, TurnGivenUp, WorkerDied

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
        ProviderError: no model call can be made; the journal keeps everything.
        InfraError: the machine failed twice in a row; the journal keeps everything.
        StoreError: the journal cannot be written.
    """
    parts.store.begin(spec, problem)
    stored = stored_result(parts.store, spec, closes=parts.closes)
    if stored is not None:
        payload = {"reason": stored.reason, "message": stored.detail, "waiting": ()}
        listen(Event(kind="stopped", payload=payload))
        return stored
    note_closing(parts.store, parts.closes)
    reporter = Reporter(parts.store, listen)
    began_s = clock()
    try:
        info = _load(parts.verifier, problem, reporter)
    except Pending as exc:
        waiting = Ending(reason=StopReason.WAITING, detail=str(exc), waiting=exc.waiting)
        return _end(parts, spec, reporter, waiting)
    except (TurnGivenUp, KeyboardInterrupt):
        return _end(parts, spec, reporter, Ending(reason=StopReason.INTERRUPTED))
    except StoreError:
        raise  # the journal itself failed: there is nowhere to note it
    except HotloopError as exc:
        reporter.stopped(StopReason.FAILED, spec.budget, message=str(exc))
        raise
    reporter.setup(info, max(0.0, clock() - began_s - waited_s(parts.verifier)))
    meter = Meter(spec.budget, parts.store, clock=clock, has_final=spec.device != "cpu")
    session = Session(
        parts=parts,
        spec=spec,
        problem=problem,
        info=info,
        meter=meter,
        reporter=reporter,
        clock=clock,
        stop=stop or StopFlag(),
    )
    pause_by(parts.verifier, meter.paused)
    with meter:
        ending = _run(session)
    if ending.reason is StopReason.WALL:
        ending = replace(ending, detail=_overrun(session))
    return _end(parts, spec, reporter, ending)


def _load(verifier: Verifier, problem: Problem, reporter: Reporter) -> ProblemInfo:
    """Load the problem; once more when the judge ended in the middle of it."""
    try:
        return verifier.load(problem)
    except WorkerDied as exc:
        reporter.warning(f"{type(exc).__name__}: {exc}; trying once more")
    return verifier.load(problem)


def _end(parts: Parts, spec: RunSpec, reporter: Reporter, ending: Ending) -> RunResult:
    waiting = ending.waiting if ending.reason is StopReason.WAITING else ()
    reporter.stopped(ending.reason, spec.budget, message=ending.detail, waiting=waiting)
    return collect(parts.store, ending.reason, ending.detail, waiting=waiting)


def _run(session: Session) -> Ending:
    """Search, then verify the best at the final tier; return why it ended."""
    parts = session.parts
    try:
        with (
            Lanes(parts.verifier.build, parts.lanes) as lanes,
            Calls(parts.generator, parts.calls, clock=session.clock) as calls,
            fast_tier(session, lanes, calls) as ending,
        ):
            if _is_time_for_final(session, ending):
                lanes.close()
                awaited = run_final_tier(session)
                if awaited is not None:
                    ending = Ending(
                        reason=StopReason.WAITING, detail=str(awaited), waiting=awaited.waiting
                    )
    except KeyboardInterrupt:
        return Ending(reason=StopReason.INTERRUPTED)
    except StoreError:
        raise  # the journal itself failed: there is nowhere to note it
    except HotloopError as exc:
        message = str(exc)
        session.reporter.stopped(StopReason.FAILED, session.spec.budget, message=message)
        raise
    return Ending(reason=StopReason.INTERRUPTED) if session.stop.draining else ending


def _is_time_for_final(session: Session, ending: Ending) -> bool:
    if not session.has_final or session.stop.now:
        return False
    # An answer that is still to come may be the best, unless there is no time left to verify it.
    return not ending.is_waiting or ending.reason in (StopReason.WALL, StopReason.CLOSED)


def _overrun(session: Session) -> str | None:
    """Say what used up a budget that gave room to one verification or none."""
    limit_s, longest_s = session.spec.budget.wall_s or 0.0, session.meter.longest_fast_s()
    if longest_s is None:
        is_first = all(a.verdict is None for a in session.parts.store.attempts())
        return "before a verification could start" if is_first else None
    if longest_s < SLOW_FRAC * limit_s:
        return None
    return f"one verification took {longest_s:.0f} s of a budget of {limit_s:.0f} s"
