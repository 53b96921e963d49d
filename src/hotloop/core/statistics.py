"""Medians, ratios and their uncertainty. Standard library only: the worker uses it too.

A speed-up is a ratio of medians, baseline over candidate. Its interval is a percentile bootstrap
(Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13), seeded, so the same
samples always give the same interval. Not here: what counts as a win (`hotloop.report.metrics`).
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from typing import NamedTuple

RESAMPLES = 2000
"""Percentile intervals want at least 1000 resamples (Efron and Tibshirani)."""

LEVEL_FRAC = 0.95
"""Of the confidence intervals."""

MIN_RESAMPLED = 5
"""Fewer blocks than this give an interval that is far too narrow: none is returned."""

Block = tuple[Sequence[float], Sequence[float]]
"""Samples of baseline and candidate that were taken together, in that order."""


class Interval(NamedTuple):
    """A confidence interval; `low <= high`."""

    low: float
    high: float


def median(samples: Sequence[float]) -> float:
    """Return the median.

    Raises:
        ValueError: there are no samples.
    """
    if not samples:
        raise ValueError("expected at least one sample, got none")
    return float(statistics.median(samples))


def interquartile_range(samples: Sequence[float]) -> float:
    """Return the distance between the quartiles; 0 for a single sample.

    Raises:
        ValueError: there are no samples.
    """
    if not samples:
        raise ValueError("expected at least one sample, got none")
    if len(samples) == 1:
        return 0.0
    low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
    return high - low


def quantile(samples: Sequence[float], share_frac: float) -> float:
    """Return the value below which `share_frac` (0 to 1) of the samples lie, interpolated.

    Raises:
        ValueError: there are no samples, or the share is outside [0, 1].
    """
    if not samples:
        raise ValueError("expected at least one sample, got none")
    if not 0.0 <= share_frac <= 1.0:
        raise ValueError(f"expected a share from 0 to 1, got {share_frac!r}")
    ordered = sorted(samples)
    place = share_frac * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def paired_speedup_interval(
    blocks: Sequence[Block], *, seed: int = 0, resamples: int = RESAMPLES
) -> Interval:
    """Return the bootstrap interval of a ratio of medians over whole blocks measured together.

    The ratio is median(baseline) / median(candidate): over 1 means the candidate is faster. A drift
    of the clock rate that hits both sides of a block alike then cancels, and samples of one block
    are not taken for independent ones.

    Raises:
        ValueError: there are fewer than `MIN_RESAMPLED` blocks, or one lacks samples.
    """
    if len(blocks) < MIN_RESAMPLED:
        raise ValueError(f"expected at least {MIN_RESAMPLED} blocks, got {len(blocks)}")
    if resamples < 1:
        raise ValueError(f"expected at least one resample, got {resamples!r}")
    for baseline_ms, candidate_ms in blocks:
        _check_times(baseline_ms)
        _check_times(candidate_ms)

    def draw(rng: random.Random) -> float:
        chosen = rng.choices(blocks, k=len(blocks))
        above = [t for baseline_ms, _ in chosen for t in baseline_ms]
        below = [t for _, candidate_ms in chosen for t in candidate_ms]
        return median(above) / median(below)

    rng = random.Random(seed)
    ratios = sorted(draw(rng) for _ in range(resamples))
    tail_frac = (1.0 - LEVEL_FRAC) / 2.0
    return Interval(quantile(ratios, tail_frac), quantile(ratios, 1.0 - tail_frac))


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean, the right average of ratios.

    Raises:
        ValueError: there are no values, or one is not a finite number over 0.
    """
    _check_times(values)
    return math.exp(math.fsum(math.log(v) for v in values) / len(values))


def _check_times(samples: Sequence[float]) -> None:
    if not samples:
        raise ValueError("expected at least one sample, got none")
    for value in samples:
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"expected finite values over 0, got {value!r}")
