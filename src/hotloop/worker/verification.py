"""The ladder: compile, correctness, performance; the first failing stage is the verdict.

`static` runs before, in the coordinator. A candidate's failure is a verdict; a failure of this
machine leaves as an `InfraError`.

What is held out comes last, after timing, when no process lives whose words a model may read: all
processes of a candidate share its folder, and pass on by it which sizes they were shown.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from hotloop.core.candidate import Candidate
from hotloop.core.language import runs_on_cpu
from hotloop.core.problem import Role
from hotloop.core.verdict import Correctness, Stage, Status, Tier, Verdict
from hotloop.worker.builds import Build, Builds
from hotloop.worker.conduct import check_conduct
from hotloop.worker.correctness import CorrectnessStage
from hotloop.worker.device import confirm_device
from hotloop.worker.diagnosis import workload_of
from hotloop.worker.evaluation import Evaluation, Failed
from hotloop.worker.final import ROUNDS, SHORT_ROUNDS, time_final
from hotloop.worker.follow_up import follow_up
from hotloop.worker.hoarding import hoarded, no_room
from hotloop.worker.memory import DoesNotFit, leave_room, ran_out
from hotloop.worker.patience import Patience
from hotloop.worker.performance import CandidateTimer, Timing
from hotloop.worker.performance_record import describe_performance
from hotloop.worker.profile import Profiler
from hotloop.worker.profile_ncu import Counters
from hotloop.worker.sanitizer import SHORT, Sanitizer, check_name, skip_all
from hotloop.worker.session import Session
from hotloop.worker.timed import rest_clock
from hotloop.worker.view import WorkloadView
from hotloop.worker.workroom import Workroom

CALL_TIMEOUT_S = {"cuda": 30.0, "cpu": 300.0}
"""One call. Interpreted kernels on a CPU are some 10,000 times slower."""

_MAY_BE_THE_DEVICE = (Status.RUNTIME_ERROR, Status.TIMEOUT)
"""A GPU that is gone looks like this from a candidate's process."""


class Verification:
    """One candidate on its way up the ladder."""

    def __init__(
        self,
        session: Session,
        room: Workroom,
        builds: Builds,
        candidate: Candidate,
        *,
        call_timeout_s: float,
        profiler: Profiler | None = None,
        short: bool = False,
    ) -> None:
        self._profiler = profiler
        self._short = short
        self._sanitizer: Sanitizer | None = None
        self._skipped: dict[str, str] = {}
        self._counters = Counters()
        self._call_timeout_s = call_timeout_s
        self._session = session
        self._room = room
        self._builds = builds
        self._candidate = candidate
        self._stage_s: dict[str, float] = {}
        self._build: Build | None = None
        self._correctness: Correctness | None = None
        self._isolation = room.tier
        self._checks: list[str] = []
        self._gpu_start: float | None = None
        self._patience = Patience()

    def run(self, tier: Tier) -> Verdict:
        """Return the verdict.

        Raises:
            InfraError: the machine is at fault.
        """
        try:
            self._compile()
            if self._session.device == "cpu" and not runs_on_cpu(self._candidate.language):
                assert self._build is not None
                raise self._build.unrun(self._candidate.language)
            self._gpu_start = time.monotonic()
            return self._judge(tier)
        except Failed as failed:
            if self._session.device == "cuda" and failed.status in _MAY_BE_THE_DEVICE:
                confirm_device()
            found = failed.evidence
            return self._verdict(tier, failed.status, failed.stage, found.message, evidence=found)

    def _compile(self) -> None:
        start = time.monotonic()
        self._build = self._builds.get(self._candidate)
        self._stage_s["compile_wait"] = time.monotonic() - start
        self._stage_s["compile"] = self._build.seconds
        if self._build.failure is not None:
            raise self._build.failure

    def _judge(self, tier: Tier) -> Verdict:
        rest_clock()
        if tier is not Tier.FINAL:
            return self._climb(tier)
        self._session.forget_large_cases()
        if self._short:
            left_out = ("interleaved_baselines:second_half", "other_shapes:reported")
            self._skipped.update(skip_all(SHORT) | dict.fromkeys(left_out, SHORT))
        else:
            self._sanitizer = Sanitizer(self._session, self._room, self._candidate)
        try:
            return self._climb(tier)
        finally:
            if self._sanitizer is not None:
                self._sanitizer.close()

    def _climb(self, tier: Tier) -> Verdict:
        timed = self._pass(self._session.nominal, tier)
        rest_clock()  # what comes now is not timed, and not to be recorded
        for other in self._others(tier, held_out=True):
            self._pass(other, tier)
        stage = Stage.PERFORMANCE if timed else Stage.CORRECTNESS
        text = "correct and timed" if timed else "correct on every checked input"
        return self._verdict(tier, Status.PASSED, stage, text, **timed)

    def _others(self, tier: Tier, *, held_out: bool) -> list[WorkloadView]:
        views = self._session.views(held_out=tier is Tier.FINAL)
        return [v for v in views if (v.workload.role is Role.HELD_OUT) == held_out]

    def _pass(self, view: WorkloadView, tier: Tier) -> dict[str, Any]:
        """Check one workload; after the problem's own sizes others, while its process waits.

        Returns what the verdict says of the time: nothing where it is not taken.
        """
        session, final = self._session, tier is Tier.FINAL
        evaluation = self._start(view)
        try:
            usable = self._check(view, evaluation, final=final)
            if self._sanitizer is not None and self._sanitizer.wants(view):
                if not usable:
                    evaluation.close()
                    evaluation, usable = self._start(view), True
                self._sanitizer.record(view, evaluation)
            if view is session.nominal:
                for other in self._others(tier, held_out=False):
                    self._pass(other, tier)
                self._sanitize()
                if session.device == "cuda":
                    if not usable:
                        evaluation.close()
                        evaluation = self._start(view)
                    return self._time(evaluation, tier)
            return {}
        except Exception as exc:  # noqa: BLE001  the candidate may hold the memory
            if not ran_out(exc):
                raise
            lacked = str(exc).split("\n")[0][:300]
        finally:
            evaluation.close()
        raise hoarded(session, view, lacked)  # out of the handler: its frames hold what was drawn

    def _start(self, view: WorkloadView) -> Evaluation:
        assert self._build is not None
        start = time.monotonic()
        evaluation = Evaluation.start(
            self._room, view.board, self._candidate,
            folder=self._build.folder, patience=self._patience,
        )  # fmt: skip
        self._isolation = str(evaluation.child.cage.tier)
        try:
            first = view.book.cases[0]
            view.board.write_state(view.book.draw_of(first))
            leave_room()
            evaluation.attach()
            loaded = view.reference.loaded
            alike = view is self._session.nominal and loaded.sizes is not None  # of attention
            evaluation.load(tuple(loaded.init_args or ()), buffers_alike=alike)
        except Failed as failed:
            evaluation.close()
            where = workload_of(view.reference.loaded.problem, view.workload.name)
            raise failed.on({"workload": where}) from None
        except DoesNotFit as exc:  # drawing the inputs; nothing of the candidate has run
            evaluation.close()
            raise no_room(exc) from None
        except BaseException:
            evaluation.close()
            raise
        self._add("load", start)
        return evaluation

    def _check(self, view: WorkloadView, evaluation: Evaluation, *, final: bool) -> bool:
        start = time.monotonic()
        if final:
            view.book.changed = None  # what conduct changes is drawn again, like the seeds
        stage = CorrectnessStage(evaluation, final=final)
        fresh = self._session.fresh_books
        books = fresh(view, self._skipped) if final else iter((view.book,))
        self._checks += [f"correctness:{view.workload.name}", "inputs_unmodified", "repeats"]
        try:
            stage.run(books, self._call_timeout_s)
            return check_conduct(evaluation, view.book, self._call_timeout_s, self._checks)
        except Failed as failed:
            if final or stage.wrong is None:
                raise
            nominal, details = view is self._session.nominal, failed.evidence.details
            found = follow_up(evaluation, stage.wrong, details, nominal=nominal)
            raise failed.on(found) from None
        finally:
            self._note(stage)
            self._add("correctness", start)

    def _sanitize(self) -> None:
        """Run the sanitizers on what was recorded, before anything is timed."""
        if self._sanitizer is None:
            return
        start = time.monotonic()
        try:
            self._sanitizer.run(self._start)
        finally:
            self._checks += [check_name(tool) for tool in self._sanitizer.ran]
            self._skipped.update(self._sanitizer.skipped_checks())
            self._add("sanitizer", start)

    def _note(self, stage: CorrectnessStage) -> None:
        """Add a workload's cases to those of the workloads before it."""
        before = self._correctness or Correctness(cases=(), deterministic=None)
        if stage.results:
            self._correctness = dataclasses.replace(
                before,
                cases=(*before.cases, *stage.results),
                deterministic=False if before.deterministic is False else stage.deterministic,
            )

    def _time(self, evaluation: Evaluation, tier: Tier) -> dict[str, Any]:
        """Time a correct candidate; return what its verdict says of that."""
        start = time.monotonic()
        assert self._session.timed is not None
        timer = CandidateTimer(evaluation, self._session.timed)
        timer.start()
        timing = timer.measure()
        self._checks += ["timed_outputs", "wall_check"]
        final = None
        if tier is Tier.FINAL:
            rounds = SHORT_ROUNDS if self._short else ROUNDS
            final = time_final(self._session, self._room, evaluation, timing, rounds=rounds)
            self._checks += ["interleaved_baselines"]
        self._add("performance", start)
        if tier is Tier.FAST:
            self._profile(evaluation, timing)
        assert self._correctness is not None
        checked = timer.calls_checked + (final.calls_checked if final else 0)
        self._correctness = dataclasses.replace(self._correctness, timed_calls_checked=checked)
        record = describe_performance(self._session, timing, final, evaluation, self._counters)
        return {"performance": record, "mode": final.mode if final else None}

    def _profile(self, evaluation: Evaluation, timing: Timing) -> None:
        """Read hardware counters where they are asked for and this is the best so far."""
        if self._profiler is None or not self._profiler.is_best(timing.median_ms):
            return
        start = time.monotonic()
        self._counters = self._profiler.counters(evaluation, timing.kernels)
        self._add("profile", start)

    def _add(self, name: str, start: float) -> None:
        self._stage_s[name] = self._stage_s.get(name, 0.0) + time.monotonic() - start

    def _verdict(
        self, tier: Tier, status: Status, stage: Stage, message: str, **fields: Any
    ) -> Verdict:
        session = self._session
        if self._gpu_start is not None:
            self._stage_s["gpu"] = time.monotonic() - self._gpu_start
        return Verdict(
            status=status,
            stage=stage,
            message=message,
            candidate_id=self._candidate.id,
            problem_id=session.problem.id,
            tier=tier,
            device=session.device,
            isolation=self._isolation,
            precision_policy=session.problem.policy.precision,
            shape_scope=session.problem.policy.shape_scope,
            deterministic=self._correctness.deterministic if self._correctness else None,
            correctness=self._correctness,
            resources=self._build.resources if self._build else (),
            checks=tuple(dict.fromkeys(self._checks)),
            checks_skipped=self._skipped,
            short=self._short and tier is Tier.FINAL,
            stage_s={name: round(value, 4) for name, value in self._stage_s.items()},
            environment=session.info.environment,
            **fields,
        )
