"""Seat: one judge, and the thread that feeds it with the groups of a bundle.

Where a GPU has several, each is beside the others but for timing (`worker/timing_turns.py`). What
lacked memory or time there is done again with the GPU whole (`crowd.py`).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.verdict import Verdict
from hotloop.errors import DeviceLost, HotloopError, InfraError, ProblemError
from hotloop.verify.bundle import Item
from hotloop.verify.bundle_board import Board
from hotloop.verify.bundle_diary import Diary
from hotloop.verify.bundle_plan import Group, Plan
from hotloop.verify.crowd import NO_ROOM, Crowd, lacked_room, was_crowded
from hotloop.verify.local import LocalVerifier

MAX_FAILED_GROUPS = 2
"""Problems in a row that a GPU may fail to load before it is left alone: one may be at fault."""

Tell = Callable[[str], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a judge sits, and with whom."""

    gpu: str | None
    """Index or UUID; None is the first one, or the CPU."""
    lanes: int
    """Builds that run ahead of it."""
    number: int = 1
    """Of the judges of this GPU, from 1."""
    crowd: Crowd = field(default_factory=Crowd)
    """All judges of this GPU."""
    turns: str | None = None
    """The folder by which they take turns at timing; None where there is one judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOptions:
    """On what, how safely and how long a bundle is judged."""

    device: str
    """`cuda` or `cpu`."""
    gpus: tuple[str | None, ...] = (None,)
    """Index or UUID of each GPU; None is the first one, or the CPU."""
    judges: int = 1
    """Of each GPU; they work beside each other and take turns at timing."""
    min_isolation: str = "T1"
    budget_s: float | None = None
    """None: until all is judged."""
    log_folder: Path | None = None
    """Where each judge's standard error goes; None: nowhere."""


class Seat:
    """One judge, and the thread that feeds it."""

    def __init__(
        self,
        plan: Plan,
        board: Board,
        options: JudgeOptions,
        *,
        place: Place,
        tell: Tell,
    ) -> None:
        self._plan = plan
        self._board = board
        self._options = options
        self._place = place
        self._lanes = place.lanes
        self._name = options.device if place.gpu is None else f"GPU {place.gpu}"
        if options.judges > 1:
            self._name += f", judge {place.number}"
        self.key = place.gpu or options.device
        """What the GPU is called in the record of its use."""
        self.diary = Diary()
        self._tell = tell
        self._is_stopped = False
        self._has_problem = False
        self._audits = plan.audits
        self._failed: list[Group] = []
        self._failed_in_a_row = 0
        self._verifier = self._new_verifier()
        place.crowd.join(self._drop)

    def run(self) -> None:
        """Serve group after group until the plan has none, or this GPU seems to be at fault."""
        try:
            while self._verifier.gpus.lost is None and self._failed_in_a_row < MAX_FAILED_GROUPS:
                group = self._plan.next_group(self._failed)
                if group is None:
                    return
                with self._place.crowd.work():
                    self._work(group)
            why = f"{MAX_FAILED_GROUPS} problems in a row could not be loaded on it"
            lost = self._verifier.gpus.lost
            self._tell(f"{self._name}: left alone: {lost or why + '; run `hotloop doctor` there'}")
        finally:
            self._verifier.close()

    def _work(self, group: Group) -> None:
        is_loaded = self._load(group)
        try:
            if is_loaded:
                with self.diary.service():
                    self._serve(group)
        finally:
            if self._place.crowd.is_shared:
                self._rest()
            self._plan.leave(group, is_loaded=is_loaded)

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
                info = self._roomy(
                    lambda: self._twice(lambda: self._load_problem(problem, ahead)), lacked_room
                )
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
                verdict = self._roomy(
                    lambda: self._twice(lambda: self._verify(group, candidate, item)), was_crowded
                )
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

    def _roomy(self, work: Callable[[], T], lacked: Callable[[T], bool]) -> T:
        """Do it, and once more with the GPU whole where other judges may have harmed it."""
        crowd = self._place.crowd
        try:
            found = work()
        except DeviceLost:
            raise
        except (InfraError, ProblemError) as exc:
            if not crowd.is_shared or NO_ROOM.search(str(exc)) is None:
                raise
        else:
            if not crowd.is_shared or not lacked(found):
                return found
        self._tell(f"{self._name}: memory or time ran out; once more without the other judges")
        with crowd.whole(self._drop):
            return work()

    def _rest(self) -> None:
        """Keep neither memory nor the GPU from the others while this judge has no group."""
        self._has_problem = False
        try:
            self._verifier.rest()
        except HotloopError:
            self._verifier.abandon()

    def _drop(self) -> None:
        """End the judge, and its memory with it; the next use starts another."""
        self._has_problem = False
        self._verifier.abandon()

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
            number = f"-{self._place.number}" if options.judges > 1 else ""
            log_path = options.log_folder / f"judge-{self.key}{number}.log"
        verifier = LocalVerifier(
            options.device,
            min_isolation=options.min_isolation,
            log_path=log_path,
            profile=options.device == "cuda",
            gpu=self._place.gpu,
        )
        if self._place.turns is not None:
            verifier.sharing = {"turns": self._place.turns, "judges": options.judges}
        return verifier

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
