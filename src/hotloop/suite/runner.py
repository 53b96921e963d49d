"""Runs the problems of a suite: one or more runs at a time on each GPU, each in a thread.

Runs that share a GPU take turns on it (`verify/turns.py`), so that it works while a model thinks.
What goes wrong with one problem is written down and the others go on. What would go wrong with
every further problem (a key that is not accepted, a disk that is full) ends the suite.
"""

from __future__ import annotations

import queue
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from hotloop import api
from hotloop.core.event import Event, Listener
from hotloop.engine import StopFlag
from hotloop.errors import (
    AuthError,
    DeviceLost,
    HotloopError,
    QuotaExhausted,
    StoreError,
    UnknownModel,
)
from hotloop.suite.folder import Suite
from hotloop.suite.leftovers import Leftovers
from hotloop.suite.planning import Job, SuitePlan, trouble_of, with_wall
from hotloop.suite.rounds import Search, with_verdicts
from hotloop.suite.sharing import had_their_share
from hotloop.suite.standing import Standing, is_finished, read_standing
from hotloop.verify.bundle import Verdicts
from hotloop.verify.turns import Turns

MIN_WALL_S = 0.001
"""A budget is over 0: a run that may spend nothing more ends where it is."""
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
    """GPUs as `CUDA_VISIBLE_DEVICES` takes them, or None for a judge that needs none here."""
    runs_per_seat: int = 1
    """Runs at a time on each; one of their judges at a time works there."""
    memory_bytes: Mapping[str | None, int] = field(default_factory=dict)
    """Of each GPU for which it is known."""
    shared_budget: bool = False
    """Whether time that problems leave over goes to others."""
    verdicts: Verdicts | None = None
    """What the judge elsewhere answered, for all runs."""
    retry_skipped: bool = False
    """Try again what was skipped because the problem was at fault."""
    search: Search = api.run_plan
    shown: Callable[[Search], Search] = lambda search: search
    """Shows each run while all that belongs to it is under way."""


def run_suite(
    suite: Suite, plan: SuitePlan, options: SuiteOptions, *, tell: Tell, stop: StopFlag
) -> HotloopError | None:
    """Bring every run as far as it comes, and write down what could not be run.

    Returns:
        What ended the suite early, where something did.
    """
    for name, trouble in plan.refused.items():
        suite.note(name, trouble)
    desk = _Desk(suite, plan, options, tell=tell, stop=stop)
    desk.work(_Shares(_granted(plan.jobs, suite) if options.shared_budget else plan.jobs))
    if options.shared_budget and not desk.is_over() and had_their_share(rows := standings(suite)):
        desk.work(Leftovers(suite, plan.jobs, rows, is_over=desk.is_over))
    return desk.fatal


def _granted(jobs: Iterable[Job], suite: Suite) -> list[Job]:
    """Return the jobs with what they were granted in earlier sessions.

    Where something was granted, a problem that is open again (it was skipped, or may call more
    often now) gets no more than nobody else was promised: its share may have been granted away.
    """
    grants, found = suite.record.grants, list(jobs)
    share_s = found[0].plan.spec.budget.wall_s if found else None
    if share_s is None or not grants:
        return found
    results = {row.member.name: row.result for row in standings(suite)}
    spent_s = {name: r.spent_s if r is not None else 0.0 for name, r in results.items()}
    promised = {n: share_s + grants[n].wall_s if n in grants else spent_s[n] for n in spent_s}
    free_s = len(promised) * share_s - sum(promised.values())
    limited = []
    for job in found:
        name = job.member.name
        if name not in grants:
            more_s = max(0.0, min(share_s - spent_s[name], free_s))
            free_s -= more_s
            promised[name] += more_s
        limited.append(with_wall(job, max(promised[name], MIN_WALL_S)))
    return limited


def standings(suite: Suite) -> list[Standing]:
    """Return where every problem of a suite stands, in its order."""
    record = suite.record
    return [
        read_standing(suite.run_folder(member), member, record.troubles.get(member.name))
        for member in record.problems
    ]


class _Jobs(Protocol):
    """Where jobs come from; thread-safe."""

    def take(self) -> Job | None:
        """Return the next one; None when none will come."""

    def done(self, job: Job) -> None:
        """Take note that nobody runs it any more."""


class _Shares:
    """Each problem once."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        for job in jobs:
            self._jobs.put(job)

    def take(self) -> Job | None:
        try:
            return self._jobs.get_nowait()
        except queue.Empty:
            return None

    def done(self, job: Job) -> None:
        """Do nothing: its time is up."""


class _Desk:
    """Hands out the jobs and takes what came of them."""

    def __init__(
        self, suite: Suite, plan: SuitePlan, options: SuiteOptions, *, tell: Tell, stop: StopFlag
    ) -> None:
        self._suite, self._options, self._tell, self._stop = suite, options, tell, stop
        self._device = plan.jobs[0].plan.spec.device
        is_here = plan.jobs[0].plan.judge.is_local
        memory = options.memory_bytes
        self._turns = {
            seat: Turns(memory_bytes=memory.get(seat)) for seat in options.seats if is_here
        }
        search = options.search
        if options.verdicts is not None:
            search = with_verdicts(search, options.verdicts)
        self._bring_on = options.shown(search)
        self._lost: set[str | None] = set()
        self.fatal: HotloopError | None = None

    def is_over(self) -> bool:
        """Whether nothing more is to be begun."""
        return self.fatal is not None or self._stop.draining

    def work(self, jobs: _Jobs) -> None:
        """Run jobs until none is left; the calling thread runs some of them itself."""
        options = self._options
        first, *others = [seat for _ in range(options.runs_per_seat) for seat in options.seats]
        threads = [
            threading.Thread(
                target=self._serve, args=(seat, jobs), daemon=True, name=f"suite-{seat}"
            )
            for seat in others
        ]
        for thread in threads:
            thread.start()
        self._serve(first, jobs)
        for thread in threads:
            thread.join(LAST_WORDS_S if self._stop.now else None)
        self._note_use()

    def _serve(self, seat: str | None, jobs: _Jobs) -> None:
        """Run one job after the other on a GPU until there are none, or the GPU is lost."""
        try:
            while not self.is_over() and seat not in self._lost:
                job = jobs.take()
                if job is None:
                    return
                try:
                    if self._run(job, seat):
                        self._lost.add(seat)
                finally:
                    jobs.done(job)
                self._note_use()
        except StoreError as exc:  # of the suite's own file
            self.fatal = exc

    def _note_use(self) -> None:
        found = {seat or self._device: turns.use() for seat, turns in self._turns.items()}
        try:
            if found and self.fatal is None:
                self._suite.note_use(found)
        except StoreError as exc:
            self.fatal = exc

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
        self._bring_on(
            plan, listen=self._listener(job), stop=self._stop, turns=self._turns.get(seat)
        )
        self._tell(job, read_standing(plan.folder, job.member, None).state.value)

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
