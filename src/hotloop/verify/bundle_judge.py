"""Judge a bundle on this machine: one judge per GPU, each with a thread that feeds it.

What was found is written every few seconds, so that a process that is killed leaves what it had.
What is unfinished when the time is over is left out of the file, and so stays pending. The order of
results means nothing.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.verdict import Tier, Verdict
from hotloop.errors import ConfigError, HotloopError, InfraError, ProblemError
from hotloop.verify.bundle import Bundle, Item
from hotloop.verify.bundle_board import Board, Judged
from hotloop.verify.bundle_diary import Diary
from hotloop.verify.bundle_plan import Group, Plan
from hotloop.verify.local import LocalVerifier
from hotloop.verify.seat_use import SeatUse

WRITE_S = 3.0
"""At most so much work is lost when the process is killed."""
MAX_LANES = 8
"""Builds that run ahead of one judge; it runs no more at a time itself."""
MAX_FAILED_GROUPS = 2
"""Problems in a row that a GPU may fail to load before it is left alone: one may be at fault."""

Tell = Callable[[str], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOptions:
    """On what, how safely and how long a bundle is judged."""

    device: str
    """`cuda` or `cpu`."""
    gpus: tuple[str | None, ...] = (None,)
    """For each judge the index or UUID of its GPU; None is the first one, or the CPU."""
    min_isolation: str = "T1"
    budget_s: float | None = None
    """None: until all is judged."""
    log_folder: Path | None = None
    """Where each judge's standard error goes; None: nowhere."""


def judge_bundle(
    bundle: Bundle, out: Path, options: JudgeOptions, tell: Tell = lambda line: None
) -> Judged:
    """Judge what fits into the time; `out` always holds what was found so far.

    Args:
        bundle: problems and candidates.
        out: the verdict file, written anew.
        options: judges and time.
        tell: takes one line on each thing that happened, from any thread.

    Raises:
        ConfigError: the file cannot be written, or the final tier is asked of a CPU.
        SandboxUnavailable: this machine cannot give the isolation.
    """
    if options.device == "cpu" and any(item.tier is Tier.FINAL for item in bundle.items):
        raise ConfigError("the bundle asks for the final tier: it times kernels and needs a GPU")
    began = time.monotonic()
    end = None if options.budget_s is None else began + options.budget_s
    board = Board(out)
    board.write()  # a path that cannot be written shows before any work
    plan = Plan(
        bundle,
        lambda: float("inf") if end is None else end - time.monotonic(),
        seats=len(options.gpus),
    )
    lanes = max(1, min(MAX_LANES, (os.cpu_count() or 2) // (2 * len(options.gpus))))
    seats = [Seat(plan, board, options, gpu=gpu, lanes=lanes, tell=tell) for gpu in options.gpus]
    threads = [threading.Thread(target=seat.run, daemon=True) for seat in seats]
    for thread in threads:
        thread.start()
    try:
        while any(thread.is_alive() for thread in threads) and (
            end is None or time.monotonic() < end
        ):
            _join(threads, WRITE_S if end is None else min(WRITE_S, end - time.monotonic()))
            board.write()
    finally:
        plan.stop()
        for seat in seats:
            seat.stop()
        _join(threads, WRITE_S)
        board.write()
    return replace(board.judged(bundle), use=_use_of(seats, time.monotonic() - began))


def _use_of(seats: Sequence[Seat], wall_s: float) -> dict[str, SeatUse]:
    found: dict[str, SeatUse] = {}
    for seat in seats:
        use = replace(seat.diary.use, wall_s=wall_s)
        found[seat.key] = found.get(seat.key, SeatUse()) + use
    return found


def _join(threads: Sequence[threading.Thread], seconds: float) -> None:
    """Wait until all have ended, or so long."""
    end = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))


class Seat:
    """One GPU: its judge, and the thread that feeds it."""

    def __init__(
        self,
        plan: Plan,
        board: Board,
        options: JudgeOptions,
        *,
        gpu: str | None,
        lanes: int,
        tell: Tell,
    ) -> None:
        self._plan = plan
        self._board = board
        self._options = options
        self._gpu = gpu
        self._lanes = lanes
        self._name = options.device if gpu is None else f"GPU {gpu}"
        self.key = gpu or options.device
        """What it is called in the record of its use."""
        self.diary = Diary()
        self._tell = tell
        self._is_stopped = False
        self._has_problem = False
        self._audits = plan.audits
        self._failed: list[Group] = []
        self._failed_in_a_row = 0
        self._verifier = self._new_verifier()

    def run(self) -> None:
        """Serve group after group until the plan has none, or this GPU seems to be at fault."""
        try:
            while self._verifier.gpus.lost is None and self._failed_in_a_row < MAX_FAILED_GROUPS:
                group = self._plan.next_group(self._failed)
                if group is None:
                    return
                is_loaded = self._load(group)
                try:
                    if is_loaded:
                        with self.diary.service():
                            self._serve(group)
                finally:
                    self._plan.leave(group, is_loaded=is_loaded)
            why = f"{MAX_FAILED_GROUPS} problems in a row could not be loaded on it"
            lost = self._verifier.gpus.lost
            self._tell(f"{self._name}: left alone: {lost or why + '; run `hotloop doctor` there'}")
        finally:
            self._verifier.close()

    def stop(self) -> None:
        """End the judge at once; what it was at stays pending."""
        self._is_stopped = True
        self._verifier.abort()

    def _load(self, group: Group) -> bool:
        problem, began = group.problem, time.monotonic()
        # More than one would keep the load waiting: it times nothing while a compiler works.
        ahead = self._plan.next_candidates(group, 1)
        try:
            with self.diary.work():
                info = self._twice(lambda: self._load_problem(problem, ahead))
        except HotloopError as exc:
            if not self._is_stopped:
                self._load_failed(group, exc)
                self._say(problem.name, f"cannot be loaded: {type(exc).__name__}: {exc}", began)
            return False
        self._has_problem = True
        self._failed_in_a_row = 0
        self._plan.loaded(group)
        self._plan.took(None, time.monotonic() - began)
        self._board.loaded(info)
        self._say(problem.name, "loaded", began)
        if shared := info.environment.get("gpu_shared"):
            self._tell(f"{self._name}: times may be too long: {shared}")
        return True

    def _load_problem(self, problem: Problem, ahead: Sequence[Candidate] = ()) -> ProblemInfo:
        self._verifier.known_audit = self._audits.get(problem.id)
        return self._verifier.load(problem, ahead=ahead)

    def _load_failed(self, group: Group, exc: HotloopError) -> None:
        self._board.failed(group.problem, None, exc)
        if not isinstance(exc, InfraError) and self._plan.close(group):
            return  # the problem is broken, this GPU is not
        self._failed.append(group)
        self._failed_in_a_row += 1
        self._plan.load_failed(group)

    def _serve(self, group: Group) -> None:
        held: deque[Item] = deque()
        pool = ThreadPoolExecutor(self._lanes, thread_name_prefix="lane")
        try:
            while True:
                for item in self._plan.claim(group, self._lanes + 1 - len(held)):
                    held.append(item)
                    assert item.candidate is not None, "groups hold candidates only"
                    # Whatever fails there is told again, or mended, by `verify`.
                    pool.submit(self._verifier.build, item.candidate)
                is_over = self._is_stopped or self._verifier.gpus.lost is not None
                if is_over or not held or not self._plan.fits(held[0].tier):
                    break
                self._judge(group, held.popleft())
        finally:
            self._plan.put_back(group, held)
            pool.shutdown(wait=False, cancel_futures=True)

    def _judge(self, group: Group, item: Item) -> None:
        assert item.candidate is not None
        assert item.tier is not None
        problem, candidate, tier = group.problem, item.candidate, item.tier
        began = time.monotonic()
        what = f"{problem.name} {candidate.id} {tier.value}"
        try:
            with self.diary.work():
                verdict = self._twice(lambda: self._verify(group, candidate, item))
        except HotloopError as exc:
            if not self._is_stopped:
                self._board.failed(problem, item, exc)
                self._say(what, f"not judged: {type(exc).__name__}: {exc}", began)
            return
        self._plan.took(tier, time.monotonic() - began)
        self.diary.judged(verdict)
        self._board.judged_one(verdict)
        self._say(what, verdict.status.value, began)

    def _verify(self, group: Group, candidate: Candidate, item: Item) -> Verdict:
        """Verify; on a fresh judge where the last one was dropped.

        Raises:
            InfraError: also where the judge blames the problem. It was loaded, so something of
                this machine, such as memory that is taken, keeps it from being run again. The
                judge is dropped then.
        """
        try:
            if not self._has_problem:
                self._load_problem(group.problem)
                self._has_problem = True
            assert item.tier is not None
            self._verifier.short_final = item.short
            return self._verifier.verify(
                candidate, item.tier, profile_below_ms=item.profile_below_ms
            )
        except ProblemError as exc:
            self._renew()
            raise InfraError(
                "expected a verdict, as the problem was loaded on this GPU before, got "
                f"{type(exc).__name__}: {exc}; see whether something else uses the GPU's memory, "
                "or judge on a larger one"
            ) from exc

    def _renew(self) -> None:
        """Drop the judge and all that it holds; the next one starts with its first `load`."""
        self._has_problem = False
        self._verifier.close()
        self._verifier = self._new_verifier()
        if self._is_stopped:  # meanwhile, by another thread that ended the old one
            self._verifier.abort()

    def _new_verifier(self) -> LocalVerifier:
        options, log_path = self._options, None
        if options.log_folder is not None:
            log_path = options.log_folder / f"judge-{self._gpu or options.device}.log"
        return LocalVerifier(
            options.device,
            min_isolation=options.min_isolation,
            log_path=log_path,
            profile=options.device == "cuda",
            gpu=self._gpu,
        )

    def _twice(self, work: Callable[[], T]) -> T:
        """Do it, and once more on a fresh judge when the machine was at fault."""
        try:
            return work()
        except InfraError as exc:
            if self._is_stopped:
                raise
            self._tell(f"{self._name}: {type(exc).__name__}: {exc}; trying once more")
            return work()

    def _say(self, what: str, status: str, began: float) -> None:
        self._tell(f"{self._name}: {what}: {status} ({time.monotonic() - began:.1f} s)")
