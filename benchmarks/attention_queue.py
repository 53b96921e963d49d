"""Which row a GPU takes next.

Rows that are compared with each other (our own `full` with `relative` and `alibi`) go to one GPU
where that costs nothing: two GPUs of one kind differ by several per cent. A row that times another
row's kernel (`Case.base`) is handed out once that one stands: a GPU takes other rows first, and
waits while the base is measured elsewhere. Where the base will not come, the row is left.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence

from benchmarks.attention_cases import Case

COMPARED = frozenset({"full", "relative", "alibi"})
Clock = Callable[[], float]
LOOK_S = 1.0
"""How often a GPU that waits looks whether its time is over."""


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
        *,
        is_there: Callable[[Case], bool] = lambda case: True,
    ) -> None:
        """Queue the cases, the first to be taken first.

        Args:
            cases: the rows.
            estimate: expected wall seconds of a row.
            end: on `clock`; a row that is expected to end later is not begun.
            clock: seconds.
            is_there: whether a base has been measured.
        """
        self._waiting = list(cases)
        self._estimate = estimate
        self._end = end
        self._clock = clock
        self._is_there = is_there
        self._home: dict[tuple[int, int], str] = {}
        self._begun: set[Case] = set()
        self._changed = threading.Condition()

    def take(self, gpu: str) -> Case | None:
        """Return the next row of a GPU; None when none fits the time that is left."""
        with self._changed:
            while True:
                left_s = self._end - self._clock()
                fitting = [case for case in self._waiting if self._estimate(case) <= left_s]
                free = [c for c in fitting if c.base is None or self._is_there(c.base)]
                if free:
                    return self._hand_out(min(free, key=lambda c: self._distance(c, gpu)), gpu)
                if not any(case.base in self._begun for case in fitting):
                    return None
                self._changed.wait(LOOK_S)

    def done(self, case: Case) -> None:
        """Note that a row that was taken is measured, or is not going to be."""
        with self._changed:
            self._begun.discard(case)
            self._changed.notify_all()

    def left(self) -> list[Case]:
        """Return the rows that nobody took."""
        with self._changed:
            return list(self._waiting)

    def _hand_out(self, case: Case, gpu: str) -> Case:
        self._waiting.remove(case)
        self._begun.add(case)
        group = compared_with(case)
        if group is not None:
            self._home.setdefault(group, gpu)
        return case

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
            try:
                work(case, gpu)
            finally:
                queue.done(case)

    threads = [threading.Thread(target=on_one, args=(gpu,)) for gpu in gpus]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return queue.left()
