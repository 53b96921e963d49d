"""A judge that is kept for the next call, and ends by itself when nobody calls."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.protocols import Verifier
from hotloop.core.verdict import Tier, Verdict
from hotloop.errors import HotloopError, InfraError
from hotloop.verify import LocalVerifier
from hotloop.warm.watch import SILENT_S, JudgeSilent, Watch, Watched

T = TypeVar("T")

IDLE_S = 600.0
"""A judge holds a GPU context and the problem's tensors: nobody may want them any more."""


class WarmJudge:
    """One judge at a time, with the problem that it has loaded last.

    Its calls are made by one thread (`Jobs`); only the idle timer is another.
    """

    def __init__(self, open_judge: Callable[[], Verifier], *, idle_s: float = IDLE_S) -> None:
        """Start nothing yet.

        Args:
            open_judge: makes a judge; it is loaded and closed here.
            idle_s: seconds without a call after which it is closed.
        """
        self._open = open_judge
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._judge: Verifier | None = None
        self._loaded: tuple[Problem, ProblemInfo] | None = None
        self._timer: threading.Timer | None = None

    @property
    def is_warm(self) -> bool:
        """Whether a judge is running."""
        return self._judge is not None

    def load(self, problem: Problem) -> ProblemInfo:
        """Load a problem, unless it is loaded already.

        Raises:
            ProblemError: the reference is broken.
            InfraError: the machine is at fault; the next call starts another judge.
        """
        with self._lock:
            return self._using(lambda: self._load(problem))

    def verify(self, problem: Problem, candidate: Candidate, tier: Tier) -> Verdict:
        """Judge a candidate; a bad kernel is a verdict, not an exception.

        Raises:
            ProblemError: the reference is broken.
            JudgeSilent: the judge did not answer any more; the next call starts another.
            InfraError: the machine is at fault; the next call starts another judge.
        """

        def judge() -> Verdict:
            self._load(problem)
            assert self._judge is not None, "loading opened it"
            with Watch(self._judge) as watch:
                try:
                    return self._judge.verify(candidate, tier)
                except InfraError as error:
                    if not watch.gave_up:
                        raise
                    told = f"the judge answered nothing for {SILENT_S:.0f} s and was ended"
                    raise JudgeSilent(told) from error

        with self._lock:
            return self._using(judge)

    def abandon(self) -> None:
        """End the judge under whoever uses it, from any thread; the next call opens another."""
        judge = self._judge
        if isinstance(judge, Watched):
            judge.abandon()

    def close(self) -> None:
        """End the judge, if there is one. Idempotent."""
        with self._lock:
            self._stop_timer()
            self._end()

    def _load(self, problem: Problem) -> ProblemInfo:
        if self._loaded is not None and self._loaded[0] == problem:
            return self._loaded[1]
        self._loaded = None
        if self._judge is None:
            self._judge = self._open()
        info = self._judge.load(problem)
        self._loaded = problem, info
        return info

    def _using(self, work: Callable[[], T]) -> T:
        self._stop_timer()
        self._bury()
        try:
            return work()
        except HotloopError:
            self._end()  # a judge that could not do it is not trusted with the next
            raise
        finally:
            self._timer = threading.Timer(self._idle_s, self._end_if_idle)
            self._timer.daemon = True
            self._timer.start()

    def _bury(self) -> None:
        """Let go of a judge that died or froze while nobody used it: it judged nothing of this."""
        judge = self._judge
        if isinstance(judge, Watched) and not judge.is_alive(SILENT_S):
            self._end()

    def _end_if_idle(self) -> None:
        timer = threading.current_thread()
        with self._lock:
            if timer is self._timer:  # else a call came between, and set another
                self._end()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        judge, self._judge, self._loaded = self._judge, None, None
        if judge is not None:
            judge.close()


def local_judge(device: str, min_isolation: str) -> Callable[[], Verifier]:
    """Return what opens a judge on this machine."""
    return lambda: LocalVerifier(device, min_isolation=min_isolation)
