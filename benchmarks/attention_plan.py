"""How long the rows of the attention benchmark take, and how they are cut into slices.

An estimate is the wall clock that an earlier results file has of the same row, else a model of it:
set-up, which grows with the scores that goldens are made of, and the search's budget, or what one
kernel takes where a row times another's (`Case.base`). The model rests on twelve rows at S 4096
with fewer baselines, and a test holds it against them; what more baselines and longer sequences
take is a guess.

Where the time goes (60 rows, 88 minutes of one GPU): set-up 48, of which goldens and envelopes at
S 16384 take 19; searches 36; the rest is around them. Saved are the searches of rows that time
another row's kernel (5 minutes), a third of those that no target is about (5), and a guess of
goldens that records do not bear out (7). Not saved: the final tier is full on every row, and all
baselines are measured on every row, as nothing tells the judge to leave one out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from benchmarks.attention_cases import BATCHES, CASES, MAIN_S, Case
from benchmarks.attention_targets import targets
from benchmarks.results_file import Row

DEFAULT_BUDGET = "45s"
LONG_BUDGET, LONG_S = "60s", 16384
"""At this length a candidate takes several times as long to check."""
SHORT_BUDGET = "30s"
"""Of rows that no target is about, and the most that one kernel of another row may take."""
SLICE_S = 470.0
"""Wall clock of a slice: under 8 minutes."""
STOP_SPARE_S = 25.0
"""Before a slice's end, what still runs is stopped: it needs this long to drain."""
PLANNED_S = SLICE_S - STOP_SPARE_S

SETUP_S = 21.0
"""Imports, compiled baselines and the audit (12 rows on an H200: 13 to 30 s in all)."""
SCORES_S = 5.4
"""Goldens and envelopes at B 4, S 4096; they grow with B * S * S. At most so much: whole loads took
no longer (`verify_throughput_h200.json`, the same problems and sizes)."""
KERNEL_S = 11.4
"""A fast and a full final verdict on one kernel at S 4096 (`attention_trip.py`)."""
MASK_S = 6.0
"""A block mask, plain and compiled."""
TANH_S = 20.0
"""Two more compiled baselines, one of them tuned."""
END_S = 4.0
"""What the command does beside set-up and search."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows that run together on all GPUs of a machine within a slice's time."""

    cases: tuple[Case, ...]
    wall_s: float


def seconds(text: str) -> float:
    """Return `45s` or `2m` as seconds.

    Raises:
        ValueError: it is neither.
    """
    unit = {"s": 1.0, "m": 60.0}.get(text[-1:])
    try:
        amount = float(text[:-1])
    except ValueError:
        amount = math.nan
    if unit is None or not amount > 0:
        raise ValueError(f"--budget: expected a duration such as 45s or 2m, got {text!r}")
    return amount * unit


def budget_of(case: Case, asked: str | None = None) -> str:
    """Return the budget of a row's search; `asked` is the user's, for all rows."""
    if asked is not None:
        return asked
    if case.base is not None or case.key not in targeted():
        return SHORT_BUDGET
    return LONG_BUDGET if case.S >= LONG_S else DEFAULT_BUDGET


@cache
def targeted() -> frozenset[str]:
    """Return the rows that targets are about."""
    return frozenset(key for target in targets([]) for key in target.rows)


def estimate_s(case: Case, known: Mapping[str, float], asked: str | None = None) -> float:
    """Return the expected wall seconds of one row on one GPU.

    Args:
        case: the row.
        known: measured wall seconds by key, of searches with the same budget.
        asked: the user's budget; with one, nothing is known.
    """
    if asked is None and case.key in known:
        return known[case.key]
    scores = case.B * case.S**2 / (BATCHES[MAIN_S] * MAIN_S**2)
    search_s = seconds(budget_of(case, asked))
    if case.base is not None:
        search_s = min(search_s, KERNEL_S)
    total = SETUP_S + SCORES_S * scores + search_s + END_S
    if scores > 1:  # fresh goldens of the final tier, which may outlast the budget
        total += SCORES_S / 2 * scores
    masked = ("causal", "document", "sliding", "prefix", "neighbourhood")
    total += MASK_S if case.variant.startswith(masked) else 0.0
    total += TANH_S if case.variant == "softcap" else 0.0
    return total


def measured_s(rows: Sequence[Row]) -> dict[str, float]:
    """Return the wall seconds of measured rows by key, of searches with the row's own budget.

    Rows without a `family` were measured with fewer baselines: they would be estimated too short.
    Those that searched and would time another row's kernel now were too long.
    """
    own = {case.key: case for case in CASES}
    return {
        row["row"]: float(row["wall_s"])
        for row in rows
        if row.get("error") is None
        and "family" in row
        and (case := own.get(row["row"])) is not None
        and row.get("budget") == budget_of(case)
        and (case.base is None or "kernel_of" in row)
    }


def by_weight(cases: Sequence[Case]) -> list[Case]:
    """Return the cases, those that targets are about first: what a cut leaves out weighs least."""

    def weight(case: Case) -> tuple[bool, int, int]:
        order = {MAIN_S: 0, LONG_S: 1}.get(case.S, 2)
        return case.key not in targeted(), order, -case.D

    return sorted(cases, key=weight)


def slices(
    cases: Sequence[Case],
    gpus: int,
    known: Mapping[str, float],
    *,
    asked: str | None = None,
    limit_s: float = PLANNED_S,
) -> list[Slice]:
    """Cut the rows into slices that each fit `limit_s` on `gpus` GPUs with the `asked` budget.

    A row that alone takes longer than `limit_s` is a slice of its own.
    """
    made: list[Slice] = []
    chosen: list[Case] = []
    busy_s = [0.0] * gpus
    for case in by_weight(cases):
        row_s = estimate_s(case, known, asked)
        if chosen and min(busy_s) + row_s > limit_s:
            made.append(Slice(tuple(chosen), max(busy_s)))
            chosen, busy_s = [], [0.0] * gpus
        chosen.append(case)
        busy_s[busy_s.index(min(busy_s))] += row_s
    return [*made, Slice(tuple(chosen), max(busy_s))] if chosen else made


def plan_text(
    cases: Sequence[Case],
    gpus: int,
    known: Mapping[str, float],
    skipped: Sequence[Case] = (),
    asked: str | None = None,
) -> str:
    """Return the slices, a line each, and the sums for 1, 2, 4 and 8 GPUs."""
    before = sum(case.key in known for case in cases) if asked is None else 0
    lines = [f"{len(cases)} rows, estimated; {before} measured before"]
    lines += [f"skipped: {case.key}: {case.path.name} is not there" for case in skipped]
    for number, one in enumerate(slices(cases, gpus, known, asked=asked), 1):
        names = ", ".join(f"{c.key} ({estimate_s(c, known, asked):.0f} s)" for c in one.cases)
        lines.append(f"slice {number}, {one.wall_s / 60:.1f} min on {gpus} GPUs: {names}")
    total_s = sum(estimate_s(case, known, asked) for case in cases)
    lines.append(f"GPU time of all rows: {total_s / 60:.0f} min")
    for count in (1, 2, 4, 8):
        cut = slices(cases, count, known, asked=asked)
        wall_s = sum(one.wall_s for one in cut)
        lines.append(f"{count} GPUs: {len(cut)} slices, {wall_s / 60:.0f} min of wall clock")
    return "\n".join(lines)
