"""A run as the report's record of a problem, so that pages share its words and tables."""

from __future__ import annotations

import shlex
from dataclasses import replace

from hotloop.core.attempt import Attempt
from hotloop.dashboard.state import RunState, activity
from hotloop.report.page import ProblemPage, Spending
from hotloop.suite.figures_classes import UNCLASSIFIED
from hotloop.suite.figures_rows import (
    FAST_TIER_PASSED,
    NO_FINAL,
    NO_KERNEL,
    NOT_LOADED,
    PASSED,
)


def problem_record(state: RunState, best: Attempt | None = None) -> ProblemPage:
    """Return the record; `best` stands for the best attempt where it was read whole."""
    spent = state.spending
    return ProblemPage(
        key="run",
        name=state.spec.problem_name,
        title="",
        level="",
        operator_class=UNCLASSIFIED,
        column=f"{state.spec.generator}/{state.problem.policy.precision}/{state.device}",
        device=state.device,
        state=str(activity(state)),
        status=_status(state),
        info=state.info,
        best=best or state.best,
        finals=state.finals,
        attempts=state.attempts,
        spent=Spending(
            time_s=spent.time_s,
            setup_s=state.setup_s,
            calls=spent.calls,
            tokens=None if spent.tokens is None else int(spent.tokens),
            usd=spent.usd,
        ),
        show_command=shlex.join(["hotloop", "show", str(state.folder)]),
        search_ended=state.has_ended,
    )


def attempt_record(state: RunState, attempt: Attempt) -> ProblemPage:
    """Return the record with one attempt in the place of the best."""
    return replace(problem_record(state), best=attempt)


def _status(state: RunState) -> str:
    if state.info is None:
        return NOT_LOADED
    if state.best is None:
        return NO_KERNEL
    if not state.is_timed:
        return FAST_TIER_PASSED
    final = state.final
    if final is None:
        return NO_FINAL
    return PASSED if final.passed else f"FINAL_{final.status.value}"
