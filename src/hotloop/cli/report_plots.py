"""The pictures of a single run's report: those of its page in the dashboard."""

from __future__ import annotations

from pathlib import Path

from hotloop.core.problem import ProblemKind
from hotloop.core.verdict import Status
from hotloop.dashboard.attempt_record import read_whole
from hotloop.dashboard.plot_budget import burn_down_plot
from hotloop.dashboard.plot_errors import error_plot
from hotloop.dashboard.plot_lineage import lineage_plot
from hotloop.dashboard.plot_progress import curve_of, progress_plot
from hotloop.dashboard.plot_roofline import roofline_plot
from hotloop.dashboard.plot_timing import timing_plot
from hotloop.dashboard.state import RunState, read_state
from hotloop.prompts.feedback import failed_case
from hotloop.report.plot import Plot

NOWHERE = ""
"""A file has no page for each attempt that a mark could lead to."""


def run_plots(folder: Path) -> tuple[Plot, ...]:
    """Return the scaling curve, the budget, the lineage, and what is known of the best kernel.

    That is its time and its place on the roofline; where none passed yet, where the last wrong one
    is wrong.

    Raises:
        StoreError, ValueError: the journal cannot be read.
    """
    state = read_state(folder)
    if not state.attempts:
        return ()
    found = [
        progress_plot([state], [curve_of(state, "this run", NOWHERE)]),
        burn_down_plot(state),
        lineage_plot(state, NOWHERE),
    ]
    verdict = state.final or (None if state.best is None else state.best.verdict)
    if verdict is None:
        wrong = _last_errors(state)
        return (*found, wrong) if wrong is not None else tuple(found)
    if verdict.passed and state.is_timed:
        found += [timing_plot(verdict, state), roofline_plot(verdict, state.info)]
    return tuple(found)


def _last_errors(state: RunState) -> Plot | None:
    wrong = [
        attempt.id
        for attempt in state.attempts
        if attempt.verdict is not None and attempt.verdict.status is Status.INCORRECT_NUMERICAL
    ]
    whole = read_whole(state.folder, wrong[-1]) if wrong else None
    if whole is None or whole.verdict is None or whole.verdict.evidence is None:
        return None
    return error_plot(
        whole.verdict.evidence,
        failed_case(whole.verdict),
        is_attention=state.problem.kind is ProblemKind.ATTENTION,
    )
