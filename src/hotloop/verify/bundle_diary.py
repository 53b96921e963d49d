"""Diary: what one GPU did while a bundle was judged on it.

While it serves a problem, candidates wait for it: what it does not work then, it is idle. A
verification that waits for its compiler does no work either.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hotloop.core.verdict import Stage, Verdict
from hotloop.verify.seat_use import SeatUse

COMPILE_WAIT = "compile_wait"
"""In `Verdict.stage_s`: what the judge waited for the candidate's build."""

NO_JUDGE = frozenset({Stage.EXTRACT, Stage.STATIC})
"""Stages that no judge is needed for."""


class Diary:
    """Kept by the thread that feeds one judge; others may read `use`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` returns monotonic seconds."""
        self._clock = clock
        self._worked_s = self._idle_s = 0.0
        self._verdicts = 0

    @property
    def use(self) -> SeatUse:
        """What was done so far, without the wall clock."""
        return SeatUse(
            worked_s=self._worked_s, idle_s=max(0.0, self._idle_s), verdicts=self._verdicts
        )

    @contextmanager
    def work(self) -> Iterator[None]:
        """Load or verify in the block."""
        began_s = self._clock()
        try:
            yield
        finally:
            self._worked_s += self._clock() - began_s

    @contextmanager
    def service(self) -> Iterator[None]:
        """Judge the candidates of a loaded problem in the block, which holds blocks of `work`."""
        began_s, before_s = self._clock(), self._worked_s + self._idle_s
        try:
            yield
        finally:
            noted_s = self._worked_s + self._idle_s - before_s
            self._idle_s += self._clock() - began_s - noted_s

    def judged(self, verdict: Verdict) -> None:
        """Take off from the last work what it waited for the compiler."""
        waited_s = verdict.stage_s.get(COMPILE_WAIT, 0.0)
        self._worked_s -= waited_s
        self._idle_s += waited_s
        self._verdicts += verdict.stage not in NO_JUDGE
