"""Rounds: a run whose judge is elsewhere, brought as far as a verdict file knows answers.

A run that goes on asks for more: for the verdict of its next kernel, or for the final tier of the
next best where the best was refused. The file may hold that answer already, so it is looked into
again after each round. A file without an answer that is new ends it, so there is an end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hotloop.core.event import Event, Listener
from hotloop.engine import RunResult, StopFlag
from hotloop.plan import SearchPlan
from hotloop.store.sqlite import SqliteStore
from hotloop.verify.bundle import Verdicts
from hotloop.verify.outside import take_in

Search = Callable[..., RunResult]
"""Runs one plan; takes what `api.run_plan` takes."""


def with_verdicts(search: Search, verdicts: Verdicts) -> Search:
    """Return a search that takes in a verdict file, and goes on while that brings it further.

    Args:
        search: brings a run as far as it comes with what its journal holds.
        verdicts: what the judge elsewhere answered, for all runs of a suite.
    """
    known = problems_of(verdicts)

    def run(plan: SearchPlan, *, listen: Listener, stop: StopFlag, **options: Any) -> RunResult:
        has_answers = plan.problem.id in known
        if has_answers:
            _take_in(plan, verdicts, listen)
        while True:
            result = search(plan, listen=listen, stop=stop, **options)
            if not has_answers or stop.draining or not _take_in(plan, verdicts, listen):
                return result

    return run


def problems_of(verdicts: Verdicts) -> set[str]:
    """Return the ids of the problems that a verdict file speaks of."""
    found = {info.problem_id for info in verdicts.infos.values()}
    found |= {verdict.problem_id for verdict in verdicts.verdicts}
    return found | {error.problem_id for error in verdicts.errors}


def _take_in(plan: SearchPlan, verdicts: Verdicts, listen: Listener) -> bool:
    """Write what is new for a run into its journal; return whether there was anything."""
    with SqliteStore(plan.folder) as store:
        store.begin(plan.spec, plan.problem)
        taken = take_in(store, plan.problem, verdicts)
    for message in taken.warnings:
        listen(Event(kind="warning", payload={"message": message}))
    return bool(taken.infos or taken.verdicts or taken.errors or taken.refusals)
