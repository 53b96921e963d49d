"""Diary: what the judges of a GPU did while a bundle was judged on it.

While a judge serves a problem, candidates wait for the GPU. Where none of its judges works then, it
is idle. A verification that waits for its compiler does no work either.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from hotloop.core.verdict import Stage, Verdict
from hotloop.verify.seat_use import SeatUse

COMPILE_WAIT = "compile_wait"
"""In `Verdict.stage_s`: what the judge waited for the candidate's build."""

NO_JUDGE = frozenset({Stage.EXTRACT, Stage.STATIC})
"""Stages that no judge is needed for."""

Span = tuple[float, float]
"""Beginning and end, in seconds of one clock."""


class Diary:
    """Kept by the thread that feeds one judge; others may read it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` returns monotonic seconds."""
        self._clock = clock
        self.worked: list[Span] = []
        self.served: list[Span] = []
        self.verdicts = 0

    @contextmanager
    def work(self) -> Iterator[None]:
        """Load or verify in the block."""
        began_s = self._clock()
        try:
            yield
        finally:
            self.worked.append((began_s, self._clock()))

    @contextmanager
    def service(self) -> Iterator[None]:
        """Judge the candidates of a loaded problem in the block, which holds blocks of `work`."""
        began_s = self._clock()
        try:
            yield
        finally:
            self.served.append((began_s, self._clock()))

    def judged(self, verdict: Verdict) -> None:
        """Take off from the last work what it waited for the compiler at its beginning."""
        began_s, ended_s = self.worked[-1]
        began_s = min(ended_s, began_s + verdict.stage_s.get(COMPILE_WAIT, 0.0))
        self.worked[-1] = began_s, ended_s
        self.verdicts += verdict.stage not in NO_JUDGE


def use_of(diaries: Sequence[Diary], wall_s: float = 0.0) -> SeatUse:
    """Return what the judges of one GPU did together.

    Args:
        diaries: one for each judge.
        wall_s: from the first to the last moment that the GPU was ours.
    """
    worked = [span for diary in diaries for span in tuple(diary.worked)]
    served = [span for diary in diaries for span in tuple(diary.served)]
    worked_s = _covered_s(worked)
    return SeatUse(
        worked_s=worked_s,
        idle_s=_covered_s([*worked, *served]) - worked_s,
        wall_s=wall_s,
        verdicts=sum(diary.verdicts for diary in diaries),
    )


def _covered_s(spans: Sequence[Span]) -> float:
    """Return the seconds that lie in any of the spans."""
    covered_s, until_s = 0.0, float("-inf")
    for began_s, ended_s in sorted(spans):
        covered_s += max(0.0, ended_s - max(began_s, until_s))
        until_s = max(until_s, ended_s)
    return covered_s
