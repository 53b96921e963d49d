"""Crowd: the judges of one GPU, of which one may need all of its memory.

A problem that does not fit beside its neighbours is no broken problem, and a kernel that runs out
of memory or time there may not be at fault. Its judge gets the GPU whole then: the others finish
what they are at, end, and start again afterwards.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hotloop.core.problem import ProblemInfo
from hotloop.core.verdict import Status, Verdict

NO_ROOM = re.compile(
    r"(?<!illegal )(?<!shared )memory|\b(does|do) not fit\b|CUBLAS_STATUS_(ALLOC|NOT_INIT)",
    re.IGNORECASE,
)
"""How a judge says that memory ran out. Where it means another thing, a load is lost."""
OOM = "oom_gpu"
NO_TIME = "no time was left"
"""Begins why a check was left out that others may have kept from its turn."""


class Crowd:
    """Who works on one GPU. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._drops: list[Callable[[], None]] = []
        self._working = 0
        self._asking = 0
        """Judges that want the GPU whole, or have it."""
        self._is_taken = False

    def join(self, drop: Callable[[], None]) -> None:
        """Take part; `drop` ends the judge, from any thread, while it does not work."""
        self._drops.append(drop)

    @property
    def is_shared(self) -> bool:
        """Whether there are several judges."""
        return len(self._drops) > 1

    @contextmanager
    def work(self) -> Iterator[None]:
        """Work in the block; waits while somebody wants the GPU whole."""
        with self._changed:
            self._changed.wait_for(lambda: not self._asking)
            self._working += 1
        try:
            yield
        finally:
            with self._changed:
                self._working -= 1
                self._changed.notify_all()

    @contextmanager
    def whole(self, own: Callable[[], None]) -> Iterator[None]:
        """Have the GPU whole in the block, which lies in one of `work`.

        Args:
            own: what this judge gave to `join`; its own memory goes first.
        """
        with self._changed:
            self._asking += 1
            self._working -= 1
            self._changed.notify_all()
        has_it = False
        try:
            own()
            with self._changed:
                self._changed.wait_for(lambda: self._working == 0 and not self._is_taken)
                has_it = self._is_taken = True
            for drop in self._drops:
                drop()
            yield
        finally:
            with self._changed:
                self._is_taken = self._is_taken and not has_it
                self._asking -= 1
                self._working += 1
                self._changed.notify_all()


def lacked_room(info: ProblemInfo) -> bool:
    """Whether a load went without something because there was no memory for it."""
    return any(NO_ROOM.search(why) for why in (*info.missing_baselines.values(), *info.notes))


def ran_out(verdict: Verdict) -> bool:
    """Whether a candidate ran out of the GPU's memory."""
    return verdict.evidence is not None and verdict.evidence.kind == OOM


def was_crowded(verdict: Verdict) -> bool:
    """Whether neighbours may be why a candidate ran out of memory or time, or was checked less."""
    left_out = verdict.checks_skipped.values()
    return (
        ran_out(verdict)
        or verdict.status is Status.TIMEOUT
        or any(why.startswith(NO_TIME) or NO_ROOM.search(why) for why in left_out)
        or (verdict.status is Status.RUNTIME_ERROR and NO_ROOM.search(verdict.message) is not None)
    )
