"""Speed-ups of a suite over one baseline, failures counted as 1.0.

1.0 because a user who gets no kernel keeps the code that there was. A verified kernel whose ratio
is not claimed (the clocks disagreed, or the final tier did not measure that baseline) counts as 1.0
at most and in no fast_p but that for 0, which is the share of correct kernels; it is named. A
problem that is known to have no such baseline is left out, and is named. fast_p is KernelBench's
metric (arXiv:2502.10517): the share of problems with a correct kernel that is faster than p times
the baseline, strictly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hotloop.core.statistics import geometric_mean, median
from hotloop.core.verdict import Performance
from hotloop.report.metrics import Speedup, fast_p, is_win, speedup_over
from hotloop.suite.figures_rows import RunRow

EAGER, COMPILE, EAGER_TF32 = "eager", "compile", "eager_tf32"
BETTER = "better_of_both"
"""The faster of eager and `torch.compile`, problem by problem."""
BASELINES = (EAGER, COMPILE, BETTER)
THRESHOLDS = (0.0, 0.8, 1.0, 1.2, 1.5, 2.0)
"""The p of fast_p."""
CLEARLY = 1.05
"""A kernel over this is clearly faster: what the targets count."""


class State(StrEnum):
    """What is known of one problem's speed-up over one baseline."""

    MEASURED = "measured"
    UNCLAIMED = "unclaimed"
    """A verified kernel without a ratio that can be claimed."""
    UNSOLVED = "unsolved"
    """No verified kernel."""
    WITHOUT = "without"
    """The problem has no such baseline."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One problem beside one baseline."""

    state: State
    speedup: Speedup | None = None
    """What it counts with; None for no verified kernel."""

    @property
    def ratio(self) -> float:
        """Baseline over kernel as it counts; 1.0 for a failure."""
        return 1.0 if self.speedup is None else self.speedup.ratio


def compare(row: RunRow, baseline: str, *, own_only: bool = False) -> Compared:
    """Return how one problem counts beside a baseline.

    Args:
        row: of the problem.
        baseline: a name of the final verdict, or `better_of_both`.
        own_only: count a kernel that leaves products to a library as no kernel.
    """
    wanted = (EAGER, COMPILE) if baseline == BETTER else (baseline,)
    present = [name for name in wanted if _has(row, name)]
    if not present:
        return Compared(State.WITHOUT)
    if not row.is_solved or (own_only and not is_own(row)):
        return Compared(State.UNSOLVED)
    return _slowest_claim([_measured(row.performance, name) for name in present])


def over(rows: Sequence[RunRow], baseline: str, *, own_only: bool = False) -> dict[str, Any]:
    """Return fast_p, wins and averages of a group of problems over one baseline.

    Args:
        rows: one for each problem, solved or not.
        baseline: `eager`, `compile`, `better_of_both`, or another name of the final verdicts.
        own_only: count kernels that leave products to a library as failures.
    """
    every = {row.name: compare(row, baseline, own_only=own_only) for row in rows}
    mine = {name: c for name, c in every.items() if c.state is not State.WITHOUT}
    speedups = [c.speedup for c in mine.values()]
    claimed = [c.speedup if c.state is State.MEASURED else None for c in mine.values()]
    ratios = [c.ratio for c in mine.values()]
    return {
        "problems": len(mine),
        "fast_p": {f"{p:g}": fast_p(claimed if p else speedups, p) for p in THRESHOLDS},
        f"over_{CLEARLY:g}": sum(s is not None and s.ratio > CLEARLY for s in claimed),
        "wins": sum(is_win(s) for s in speedups),
        "geometric_mean": geometric_mean(ratios) if ratios else None,
        "median": median(ratios) if ratios else None,
        "best": max((c.ratio for c in mine.values() if c.speedup is not None), default=None),
        **{f"{state}": _named(every, state) for state in (State.UNCLAIMED, State.WITHOUT)},
    }


def is_own(row: RunRow) -> bool:
    """Whether its verified kernel leaves nothing to a library."""
    return row.anchor is not None and not row.anchor.found


def _named(every: Mapping[str, Compared], state: State) -> list[str]:
    return [name for name, compared in every.items() if compared.state is state]


def _has(row: RunRow, name: str) -> bool:
    """Whether the problem has the baseline; a problem that nobody loaded has all."""
    performance = row.performance
    if performance is not None and (name in performance.baselines or name in performance.speedup):
        return True
    # An extra baseline is asked for on some problems only: it must be seen to be there.
    if row.info is None or not row.info.baselines_ms:
        return name in (EAGER, COMPILE)
    return name in row.info.baselines_ms


def _measured(performance: Performance | None, name: str) -> Compared:
    if performance is None:
        return Compared(State.UNCLAIMED, Speedup(ratio=1.0, low=0.0, high=math.inf))
    claimed = speedup_over(performance, name)
    if claimed is not None:
        return Compared(State.MEASURED, claimed)
    ratio = performance.speedup.get(name)
    if ratio is None and name in performance.baselines:
        ratio = performance.baselines[name] / performance.latency_ms
    counted = 1.0 if ratio is None else min(ratio, 1.0)
    return Compared(State.UNCLAIMED, Speedup(ratio=counted, low=0.0, high=math.inf))


def _slowest_claim(found: Sequence[Compared]) -> Compared:
    """Return the least of several ratios; a win over the faster baseline is one over each."""
    least = min(c.ratio for c in found)
    low = min(c.speedup.low for c in found if c.speedup is not None)
    high = min(c.speedup.high for c in found if c.speedup is not None)
    claimed = all(c.state is State.MEASURED for c in found)
    state = State.MEASURED if claimed else State.UNCLAIMED
    return Compared(state, Speedup(ratio=least, low=low, high=high))
