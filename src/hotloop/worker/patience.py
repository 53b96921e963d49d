"""Patience: how long a judge waits for one candidate, all its answers together.

Every request has a deadline of its own, but their sum has none: a candidate just below each would
outlast the coordinator's own wait, which takes a silent judge for a broken machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

CANDIDATE_S = 700.0
"""Below the coordinator's wait for a verdict (1200 s) less a build (90 s), a replay, and the
judge's own work: goldens and baselines."""
REPLAY_S = 120.0


class Patience:
    """Seconds that are left to wait; shared by all processes of one verification."""

    def __init__(self, seconds: float = CANDIDATE_S) -> None:
        self.left_s = seconds

    def limit_s(self, timeout_s: float) -> float:
        """Return how long one answer may take: its own deadline, or what is left; 0 when spent."""
        return max(0.0, min(timeout_s, self.left_s))

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Take the time that the block takes off what is left."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.left_s -= time.monotonic() - start
