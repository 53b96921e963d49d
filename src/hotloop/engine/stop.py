"""StopFlag: how a user asks a run to end, and the signal handler that does it.

The first request drains: the running verification ends, then the final tier runs if the budget
allows it. The second stops at once. Nothing is lost either way: the journal has every attempt.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopFlag:
    """Counts requests to stop. Safe to set from a signal handler or another thread."""

    def __init__(self) -> None:
        self._requests = 0

    def request(self) -> None:
        """Ask once more."""
        self._requests += 1

    @property
    def draining(self) -> bool:
        """Whether no further verification should start."""
        return self._requests >= 1

    @property
    def now(self) -> bool:
        """Whether to stop at once, without a final tier."""
        return self._requests >= 2


@contextmanager
def interrupts(stop: StopFlag) -> Iterator[None]:
    """Let SIGINT and SIGTERM set `stop` inside the block; main thread only.

    From the second one on KeyboardInterrupt is raised as well, to break out of a blocking wait.
    """

    def handle(signum: int, frame: FrameType | None) -> None:
        stop.request()
        if stop.now:
            raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM)
    former = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
