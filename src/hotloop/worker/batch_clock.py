"""The judge's own clock over batches: all sets of buffers, one call each, as often as it takes.

A batch is a CUDA graph where that computes what the forward does, else a loop. Kernels that are
launched on the legacy stream escape a capture without a word; a graph of them is dropped, and only
a loop that is wrong counts against the candidate.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hotloop.core.units import s_to_ms
from hotloop.worker.evaluation import Failed
from hotloop.worker.timing_rules import skips_seen_values

BATCH_MS = 30.0
"""Length of the batch that the judge's wall clock sees."""
BATCHES = 2
FRESH_BATCHES = 3
MAX_HAND_OVER_S = 0.001
"""At most this is taken off a batch for waking both sides (16 to 400 us, docs/decisions/001): the
candidate answers the empty batch too, and could be slow about it."""


@dataclass(slots=True)
class BatchClock:
    """Batches of one process, timed from outside of it."""

    batch: Callable[..., dict[str, Any]]
    """`Evaluation.batch`: runs all sets `repeats` times, or with `capture` makes them a graph."""
    drop_graph: Callable[[], Any]
    """Lets later batches be a loop."""
    fill: Callable[[], list[int]]
    """Puts new values into every set; returns their seeds."""
    check: Callable[[list[int]], None]
    """Raises `Failed` where a set's outputs are not right for these seeds."""
    n_sets: int
    now_s: Callable[[], float] = time.perf_counter
    """Seconds of a clock that never goes back."""

    def capture(self) -> None:
        """Make batches ready to be timed: a graph of the calls as they are now, or a loop.

        Raises:
            Failed: outputs of a loop are wrong, or the process failed.
        """
        self.fill()
        if self.batch(capture=True).get("graph") is True:
            # After the capture: kernels that escaped it have run then, on the values before.
            seeds = self.fill()
            self.batch(repeats=1)
            try:
                self.check(seeds)
                return
            except Failed:
                self.drop_graph()
        seeds = self.fill()
        self.batch(repeats=1)
        self.check(seeds)

    def call_ms(self, claimed_ms: float) -> float:
        """Return the wall time of a call, from batches of about `BATCH_MS`.

        Args:
            claimed_ms: a call, as the process claims. It limits how often a batch is repeated, but
                does not say how often: a claim of nothing would make batches of minutes.

        Raises:
            Failed: an output is wrong, or the process failed.
        """
        hand_over_s = self._hand_over_s()
        most = max(1, math.ceil(BATCH_MS / max(claimed_ms * self.n_sets, 1e-3)))
        repeats, kept_ms = 1, list[float]()
        while len(kept_ms) < BATCHES:
            ms = self._fresh_ms(repeats, hand_over_s)
            if repeats < most and ms < BATCH_MS / 2:
                repeats, kept_ms = more_repeats(repeats, ms, most), []
            else:
                kept_ms.append(ms)
        return min(kept_ms) / (repeats * self.n_sets)

    def fresh_call_ms(self, claimed_ms: float) -> float:
        """Return the wall time of a call where no call of a batch has values seen before.

        The best of up to `FRESH_BATCHES`; the first that bears the claim out is enough. A part of
        the hand-over may be left in it.

        Raises:
            Failed: an output is wrong, or the process failed.
        """
        hand_over_s = self._hand_over_s()
        best_ms = math.inf
        for _ in range(FRESH_BATCHES):
            best_ms = min(best_ms, self._fresh_ms(1, hand_over_s) / self.n_sets)
            if not skips_seen_values(claimed_ms, best_ms, self.n_sets):
                break
        return best_ms

    def _fresh_ms(self, repeats: int, hand_over_s: float) -> float:
        seeds = self.fill()
        spent_s = self._seconds(repeats) - hand_over_s
        self.check(seeds)
        return s_to_ms(spent_s)

    def _hand_over_s(self) -> float:
        return min(MAX_HAND_OVER_S, *(self._seconds(0) for _ in range(3)))

    def _seconds(self, repeats: int) -> float:
        start = self.now_s()
        self.batch(repeats=repeats)
        return self.now_s() - start


def more_repeats(repeats: int, ms: float, most: int) -> int:
    """Return how often to run a batch that was too short with `repeats`: more, and up to `most`."""
    wanted = math.ceil(repeats * BATCH_MS / max(ms, 1e-3))
    return min(most, max(wanted, repeats + 1))
