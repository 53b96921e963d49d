"""Runs the problems of a suite: one run at a time on each GPU, one thread a GPU.

What goes wrong with one problem is written down and the others go on. What would go wrong with
every further problem (a key that is not accepted, a disk that is full) ends the suite.
"""

from __future__ import annotations

import queue
import threading
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from hotloop import api
from hotloop.core.event import Event, Listener
from hotloop.engine import RunResult, StopFlag
from hotloop.errors import (
    AuthError,
    DeviceLost,
    HotloopError,
    QuotaExhausted,
    StoreError,
    UnknownModel,
)
from hotloop.plan import SearchPlan
from hotloop.store.sqlite import SqliteStore
from hotloop.suite.folder import Suite
from hotloop.suite.planning import Job, SuitePlan, trouble_of
from hotloop.suite.standing import Standing, is_finished, read_standing
from hotloop.verify.bundle import Verdicts
from hotloop.verify.outside import take_in

LAST_WORDS_S = 10.0
"""For the other GPUs' runs, once the user has asked to stop at once; then they are cut off, which
loses nothing that their journals hold."""
_END_ALL = (AuthError, QuotaExhausted, UnknownModel)

Tell = Callable[[Job, str], None]
"""Called with a line on a problem, from any of the threads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteOptions:
    """How a suite is run."""

    seats: Sequence[str | None]
    """One run at a time on each: a GPU as `CUDA_VISIBLE_DEVICES` takes it, or None for a judge
    that needs none here."""
    verdicts: Verdicts | None = None
    """What the judge elsewhere answered, for all runs."""
    retry_skipped: bool = False
    """Try again what was skipped because the problem was at fault."""
    search: Callable[..., RunResult] = api.run_plan
    """Runs one plan; takes what `api.run_plan` takes."""


def run_suite(
    suite: Suite, plan: SuitePlan, options: SuiteOptions, *, tell: Tell, stop: StopFlag
) -> HotloopError | None:
    """Bring every run as far as it comes, and write down what could not be run.

    Returns:
        What ended the suite early, where something did.
    """
    for name, trouble in plan.refused.items():
        suite.note(name, trouble)
    desk = _Desk(suite, options, tell, stop)
    desk.put(plan.jobs)
    others = [
        threading.Thread(target=desk.serve, args=(seat,), daemon=True, name=f"suite-{seat}")
        for seat in options.seats[1:]
    ]
    for thread in others:
        thread.start()
    desk.serve(options.seats[0])
    for thread in others:
        thread.join(LAST_WORDS_S if stop.now else None)
    return desk.fatal


def standings(suite: Suite) -> list[Standing]:
    """Return where every problem of a suite stands, in its order."""
    record = suite.record
    return [
        read_standing(suite.run_folder(member), member, record.troubles.get(member.name))
        for member in record.problems
    ]


class _Desk:
    """Hands out the jobs and takes what came of them."""

    def __init__(self, suite: Suite, options: SuiteOptions, tell: Tell, stop: StopFlag) -> None:
        self._suite, self._options, self._tell, self._stop = suite, options, tell, stop
        self._jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self.fatal: HotloopError | None = None

    def put(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            self._jobs.put(job)

    def serve(self, seat: str | None) -> None:
        """Run jobs on one GPU until there are none, or the GPU is lost."""
        while self.fatal is None and not self._stop.draining:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return
            try:
                is_lost = self._run(job, seat)
            except StoreError as exc:  # of the suite's own file
                self.fatal = exc
                return
            if is_lost:
                return

    def _run(self, job: Job, seat: str | None) -> bool:
        """Run one job; return whether its GPU is lost."""
        trouble = self._suite.record.troubles.get(job.member.name)
        if trouble is not None and not trouble.again and not self._options.retry_skipped:
            return False
        try:
            if not is_finished(job.plan):
                self._search(job, seat)
        except HotloopError as exc:
            self._trouble(job, exc)
            if isinstance(exc, _END_ALL):
                self.fatal = exc
            return isinstance(exc, DeviceLost)
        except Exception as exc:  # noqa: BLE001  a bug in one run must not hold up the others
            place = traceback.extract_tb(exc.__traceback__)[-1]
            self._tell(job, f"a bug of hotloop, at {place.filename}:{place.lineno}")
            self._trouble(job, exc)
            return False
        self._suite.note(job.member.name, None)
        return False

    def _search(self, job: Job, seat: str | None) -> None:
        plan = replace(job.plan, gpu=seat)
        verdicts = self._options.verdicts
        if verdicts is not None and plan.problem.id in problems_of(verdicts):
            self._take_in(job, plan, verdicts)
        self._options.search(plan, listen=self._listener(job), stop=self._stop)
        self._tell(job, read_standing(plan.folder, job.member, None).state.value)

    def _take_in(self, job: Job, plan: SearchPlan, verdicts: Verdicts) -> None:
        with SqliteStore(plan.folder) as store:
            store.begin(plan.spec, plan.problem)
            for message in take_in(store, plan.problem, verdicts).warnings:
                self._tell(job, message)

    def _trouble(self, job: Job, error: Exception) -> None:
        trouble = trouble_of(error)
        self._suite.note(job.member.name, trouble)
        state = "skipped" if trouble.skipped else "failed"
        self._tell(job, f"{state}: {trouble.kind}: {trouble.message}")

    def _listener(self, job: Job) -> Listener:
        def listen(event: Event) -> None:
            if event.kind == "warning":
                self._tell(job, str(event.payload["message"]))

        return listen


def problems_of(verdicts: Verdicts) -> set[str]:
    """Return the ids of the problems that a verdict file speaks of."""
    found = {info.problem_id for info in verdicts.infos.values()}
    found |= {verdict.problem_id for verdict in verdicts.verdicts}
    return found | {error.problem_id for error in verdicts.errors}
