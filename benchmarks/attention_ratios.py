"""What rows of the attention benchmark say of speed: ratios of one row, and of several.

A row counts when its kernel PASSED at the final tier, and a ratio when the timing was believed
(`speedup` is empty where it was not). In a mean a row that failed counts as 1.0: whoever has no
kernel keeps FlexAttention. To leave it out would make the mean better.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.attention_cases import CASES, MAIN_S, PACKINGS, Case
from benchmarks.results_file import Row
from hotloop.core.statistics import geometric_mean

BASELINE = "flex"
FLEX = (BASELINE, "flex_max_autotune")
FLEX_APPROX = ("flex_approx", "flex_approx_max_autotune")
WIN_OVER = 1.02
"""A row is a win when the lower end of its interval is over this."""
FAILED_RATIO = 1.0
"""What a row that failed counts as in a mean."""

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Over:
    """A ratio over the fastest of several baselines."""

    ratio: float
    baseline: str
    """The fastest one."""
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Beside:
    """How fast one row of ours is beside another."""

    ratio: float
    """Over 1: the other one is faster."""
    how: str
    interval: Interval | None
    """From the quartiles of the calls in either row. Both rows are processes of their own, perhaps
    days apart, and what differs between processes is not in it. None: a row tells no quartiles."""


def is_result(row: Mapping[str, Any]) -> bool:
    """Whether a row's figures are results: PASSED at the final tier."""
    return row["status"] == "PASSED" and row.get("tier") == "final" and bool(row["performance"])


def speedup_of(row: Mapping[str, Any], baseline: str = BASELINE) -> float | None:
    """Return the final tier's ratio over a baseline; None where there is none."""
    if not is_result(row):
        return None
    ratio: float | None = row["performance"]["speedup"].get(baseline)
    return ratio


def interval_of(row: Mapping[str, Any], baseline: str = BASELINE) -> Interval | None:
    """Return the 95 % interval of `speedup_of`; None where none is claimed."""
    found = row["performance"].get("speedup_ci", {}).get(baseline) if is_result(row) else None
    return (float(found[0]), float(found[1])) if found else None


def is_win(row: Mapping[str, Any], baseline: str = BASELINE) -> bool:
    """Whether a row is faster than a baseline beyond doubt."""
    interval = interval_of(row, baseline)
    return interval is not None and interval[0] > WIN_OVER


def over_fastest(row: Mapping[str, Any], baselines: Sequence[str]) -> Over | None:
    """Return the ratio over the fastest of `baselines`; None unless all of them were measured."""
    ratios = {name: speedup_of(row, name) for name in baselines}
    if any(ratio is None for ratio in ratios.values()):
        return None
    known = {name: ratio for name, ratio in ratios.items() if ratio is not None}
    fastest = min(known, key=lambda name: known[name])
    return Over(known[fastest], fastest, interval_of(row, fastest))


def counted_over(row: Mapping[str, Any], baselines: Sequence[str]) -> float | None:
    """Return what a row adds to a mean: its ratio over the fastest baseline, 1.0 if it failed.

    None where there is nothing to compare: it passed and its timing was not believed, or a baseline
    does not exist for its problem.
    """
    if is_result(row):
        over = over_fastest(row, baselines)
        return None if over is None else over.ratio
    at_setup = row.get("setup_baselines_ms")
    if at_setup and not set(baselines) <= set(at_setup):
        return None
    return FAILED_RATIO


def with_prepare(row: Mapping[str, Any], baseline: str, calls: int) -> float | None:
    """Return the ratio with both sides' work ahead of the calls spread over `calls`."""
    if not is_result(row):
        return None
    spread = row["performance"].get("speedup_with_prepare", {}).get(baseline, {})
    ratio: float | None = spread.get(str(calls))
    return ratio


def by_key(rows: Iterable[Row]) -> dict[str, Row]:
    """Return the rows of the built-in generator by their names."""
    return {row["row"]: row for row in rows if row["generator"] == "builtin"}


def packings(D: int, S: int = MAIN_S) -> list[Case]:  # noqa: N803
    """Return the rows of one document problem: its own packing first."""
    others = [Case("document", D, S, packing=seed) for seed in PACKINGS[1:]]
    return [Case("document", D, S), *others]


def same_size(case: Case) -> list[Case]:
    """Return the rows that are one size of the figure: a document problem's packings, else one."""
    size = (case.variant, case.D, case.S, case.profile)
    return [c for c in CASES if (c.variant, c.D, c.S, c.profile) == size]


def size_mean(rows: Mapping[str, Row], case: Case, baselines: Sequence[str]) -> float | None:
    """Return what one size counts as; None unless all its packings were run and compared."""
    found = [
        counted_over(rows[c.key], baselines) if c.key in rows else None for c in same_size(case)
    ]
    ratios = [ratio for ratio in found if ratio is not None]
    return geometric_mean(ratios) if ratios and len(ratios) == len(found) else None


def mean_over(
    rows: Mapping[str, Row], cases: Iterable[Case], baselines: Sequence[str]
) -> float | None:
    """Return the geometric mean over cases of the ratio over the fastest baseline.

    None unless every case has one: a mean over those that happen to be there says something else.
    """
    found = [
        over_fastest(rows[case.key], baselines) if case.key in rows else None for case in cases
    ]
    ratios = [over.ratio for over in found if over is not None]
    return geometric_mean(ratios) if ratios and len(ratios) == len(found) else None


def mean_interval(
    rows: Mapping[str, Row], cases: Iterable[Case], baselines: Sequence[str]
) -> Interval | None:
    """Return an interval of `mean_over`: the geometric means of the lower and of the upper ends.

    All ends at once are no likelier than one, so it is not narrower than 95 %. None unless every
    case has an interval.
    """
    found = [
        over_fastest(rows[case.key], baselines) if case.key in rows else None for case in cases
    ]
    ends = [over.interval for over in found if over is not None and over.interval is not None]
    if not ends or len(ends) != len(found):
        return None
    return geometric_mean([low for low, _ in ends]), geometric_mean([high for _, high in ends])


def to_own(base: Mapping[str, Any], other: Mapping[str, Any]) -> Beside | None:
    """Return how fast `other` is beside `base`, both ours and of the same dense work.

    On one GPU that is the ratio of times. GPUs of one kind differ by several per cent, so on two it
    is the ratio of their shares of what each was measured to reach in a matrix product. None
    without both results, or where the timing of one was not believed.
    """
    if not (is_result(base) and is_result(other)):
        return None
    mine, theirs = base["performance"], other["performance"]
    if not (mine["speedup"] and theirs["speedup"]):
        return None
    if base.get("gpu_uuid") and base.get("gpu_uuid") == other.get("gpu_uuid"):
        ratio, how = mine["latency_ms"] / theirs["latency_ms"], "times on one GPU, two processes"
    else:
        shares = mine.get("roofline_frac"), theirs.get("roofline_frac")
        if not all(shares):
            return None
        ratio, how = shares[1] / shares[0], "shares of each GPU's own matrix rate, two processes"
    return Beside(ratio, how, _spread_of(ratio, mine, theirs))


def _spread_of(ratio: float, mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> Interval | None:
    """Return how far the quartiles of both sides' calls stretch a ratio."""
    halves = []
    for side in (mine, theirs):
        spread_ms = side.get("spread_ms")
        if spread_ms is None or spread_ms >= side["latency_ms"]:
            return None
        halves.append(spread_ms / 2 / side["latency_ms"])
    base, other = halves
    return ratio * (1 - base) / (1 + other), ratio * (1 + base) / (1 - other)
