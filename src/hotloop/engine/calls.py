"""Calls: model calls under way, each in a thread of its own.

The threads only wait for answers. They are daemons, so a call that does not come back cannot keep a
stopped run alive. What is called next is the pipeline's to say.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from hotloop.core.attempt import Attempt, Proposal, Written
from hotloop.core.problem import ProblemInfo
from hotloop.core.protocols import Generator

POLL_S = 0.05
"""How often a wait for a call looks at the budget, at slow calls and at Ctrl-C."""

STRAGGLER_FACTOR = 2.0
"""A call that takes this many times as long as the slowest tenth of those before is given up."""

MIN_STRAGGLER_S = 60.0
"""No call is given up sooner: models that answer in seconds now and then take a minute."""

CUT_AGAIN_S = 5.0
"""A call that was given up and is still under way is given up again: the first time may have come
between two sendings."""


@dataclass(slots=True, kw_only=True)
class Call:
    """One `generate` that was started."""

    attempt: Attempt
    began_s: float
    cut_s: float | None = None
    """When it was given up as too slow, the last time; None while it is not."""
    ended_s: float | None = None
    written: Written | None = None
    error: BaseException | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def seconds(self) -> float:
        """How long it took; 0 while it is under way."""
        return 0.0 if self.ended_s is None else self.ended_s - self.began_s


class Calls:
    """Runs up to `count` calls at a time; a context manager."""

    def __init__(self, generator: Generator, count: int, *, clock: Callable[[], float]) -> None:
        """Raises ValueError when `count` is under 1."""
        if count < 1:
            raise ValueError(f"expected at least one model call at a time, got {count!r}")
        self.count = count
        self._generator = generator
        self._clock = clock
        self._open: dict[int, Call] = {}
        self._ended: deque[Call] = deque()
        self._changed = threading.Condition()

    def __enter__(self) -> Calls:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def in_flight(self) -> int:
        """Calls that were started and not taken yet."""
        return len(self._open)

    @property
    def has_ended(self) -> bool:
        """Whether a call has ended and can be taken."""
        return bool(self._ended)

    def start(
        self, info: ProblemInfo, attempt: Attempt, proposal: Proposal, *, deadline_s: float | None
    ) -> None:
        """Have the proposal carried out in a thread."""
        call = Call(attempt=attempt, began_s=self._clock())
        self._open[attempt.id] = call
        threading.Thread(
            target=self._work,
            args=(call, info, proposal, deadline_s),
            name=f"call-{attempt.id}",
            daemon=True,
        ).start()

    def wait(self, timeout_s: float) -> None:
        """Wait until a call has ended, or for `timeout_s`."""
        with self._changed:
            if not self._ended:
                self._changed.wait(timeout_s)

    def take(self) -> Call | None:
        """Return a call that has ended, first come first; None when there is none."""
        with self._changed:
            call = self._ended.popleft() if self._ended else None
        if call is not None:
            self._open.pop(call.attempt.id, None)
        return call

    def cut_slow(self, slow_s: float | None) -> None:
        """Give up calls that take far longer than `slow_s`, where others could run instead."""
        if slow_s is None or self.count < 2 or self._generator.is_outside:
            return
        limit_s = max(MIN_STRAGGLER_S, STRAGGLER_FACTOR * slow_s)
        now_s = self._clock()
        for call in self._open.values():
            was_cut = call.cut_s is not None and now_s - call.cut_s < CUT_AGAIN_S
            if not was_cut and now_s - call.began_s > limit_s:
                call.cut_s = now_s
                self._generator.cancel(call.attempt.id)

    def close(self) -> list[Call]:
        """Give up every call, without waiting for their ends; return them all. Idempotent."""
        calls = list(self._open.values())
        self._open.clear()
        for call in calls:
            if not call.ended.is_set():
                self._generator.cancel(call.attempt.id)
        return calls

    def _work(
        self, call: Call, info: ProblemInfo, proposal: Proposal, deadline_s: float | None
    ) -> None:
        try:
            call.written = self._generator.generate(info, proposal, deadline_s=deadline_s)
        except BaseException as exc:  # noqa: BLE001  handed over to the thread that takes the call
            call.error = exc
        finally:
            call.ended_s = self._clock()
            call.ended.set()
            with self._changed:
                self._ended.append(call)
                self._changed.notify()
