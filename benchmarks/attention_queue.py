"""Which row a GPU takes next.

Rows that are compared with each other (our own `full` with `relative` and `alibi`) go to one GPU
where that costs nothing: two GPUs of one kind differ by several per cent.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence

from benchmarks.attention_cases import Case

COMPARED = frozenset({"full", "relative", "alibi"})
Clock = Callable[[], float]


def compared_with(case: Case) -> tuple[int, int] | None:
    """Return what names the set of rows that a row is compared with; None: it is not."""
    return (case.D, case.S) if case.variant in COMPARED else None


class RowQueue:
    """Rows that wait, shared by one thread for each GPU."""

    def __init__(
        self,
        cases: Iterable[Case],
        estimate: Callable[[Case], float],
        end: float,
        clock: Clock = time.monotonic,
    ) -> None:
        """Queue the cases, the first to be taken first.

        Args:
            cases: the rows.
            estimate: expected wall seconds of a row.
            end: on `clock`; a row that is expected to end later is not begun.
            clock: seconds.
        """
        self._waiting = list(cases)
        self._estimate = estimate
        self._end = end
        self._clock = clock
        self._home: dict[tuple[int, int], str] = {}
        self._lock = threading.Lock()

    def take(self, gpu: str) -> Case | None:
        """Return the next row of a GPU; None when none fits the time that is left."""
        with self._lock:
            left_s = self._end - self._clock()
            fitting = [case for case in self._waiting if self._estimate(case) <= left_s]
            if not fitting:
                return None
            case = min(fitting, key=lambda c: self._distance(c, gpu))
            self._waiting.remove(case)
            group = compared_with(case)
            if group is not None:
                self._home.setdefault(group, gpu)
            return case

    def left(self) -> list[Case]:
        """Return the rows that nobody took."""
        with self._lock:
            return list(self._waiting)

    def _distance(self, case: Case, gpu: str) -> int:
        group = compared_with(case)
        home = None if group is None else self._home.get(group)
        if home is None:
            return 1
        return 0 if home == gpu else 2


def serve(queue: RowQueue, gpus: Sequence[str], work: Callable[[Case, str], None]) -> list[Case]:
    """Call `work(case, gpu)` for each row, one at a time for each GPU; return what is left."""

    def on_one(gpu: str) -> None:
        while (case := queue.take(gpu)) is not None:
            work(case, gpu)

    threads = [threading.Thread(target=on_one, args=(gpu,)) for gpu in gpus]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return queue.left()
