"""Rows of a model's attention kernels, and what they say of the loop and of the template.

What the loop adds to the template is the final tier's ratio of the run's best kernel over that of
the template's kernel which the run began with, both over the same FlexAttention; it may be under 1.
Both are asked for in one bundle (`attention_starts.py`), but no verdict says in which session it
came to be, so their times are never divided: each ratio is over a FlexAttention that was timed
beside it. The interval has the ends of both that are furthest apart, so it is not narrower than
95 %. What the template adds to the loop is the ratio of the run that began with it over that of the
run that began with nothing.

A run that failed counts as 1.0 in a mean: whoever has no kernel keeps FlexAttention. One whose
final verdict has not come, or whose timing was not believed, is not measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.attention_ratios import (
    FLEX,
    Over,
    counted_over,
    interval_of,
    is_result,
    over_fastest,
    speedup_of,
)
from benchmarks.attention_starts import start_verdict
from benchmarks.pilot_rows import Journal, row_of
from benchmarks.pilot_runs import PilotRun
from benchmarks.pilot_tokens import Counter
from benchmarks.results_file import Row
from hotloop.core.statistics import geometric_mean

ARMS = ("blank", "started")
NO_VERDICT = "NO_FINAL"
"""Status of a row whose final verdict has not come."""


def model_row(run: PilotRun, journal: Journal, tokens: Counter) -> Row:
    """Return the row of one run, with the final ratio of its starting kernel beside its best."""
    row = row_of(run, journal, tokens)
    row["candidate_id"] = _best_candidate(journal, row["best_attempt"])
    start = final_of_start(journal)
    found = None if start is None else loop_adds(row, start)
    return row | {
        "start_final": start,
        "loop_over_template": None if found is None else found.ratio,
        "loop_over_template_ci": None if found is None else found.interval,
        "loop_over": None if found is None else found.baseline,
        "family": run.language,
    }


def final_of_start(journal: Journal) -> Row | None:
    """Return status, tier and ratios of the start's final verdict; None where there is none."""
    verdict = start_verdict(journal)
    if verdict is None:
        return None
    performance = verdict["performance"]
    kept = ("latency_ms", "speedup", "speedup_ci")
    return {
        "candidate_id": verdict["candidate_id"],
        "status": verdict["status"],
        "tier": verdict["tier"],
        "short": verdict.get("short", False),
        "performance": performance and {name: performance[name] for name in kept},
    }


def _best_candidate(journal: Journal, attempt_id: int | None) -> str | None:
    return next((a.candidate_id for a in journal.attempts() if a.id == attempt_id), None)


def loop_adds(row: Mapping[str, Any], start: Mapping[str, Any]) -> Over | None:
    """Return the ratio of the run's best kernel over its start's, over the same FlexAttention.

    None unless both have a final ratio over the FlexAttention that is the faster one beside the
    best kernel. Where the best kernel is the start, the ratio is 1.
    """
    best = over_fastest(row, FLEX)
    before = None if best is None else speedup_of(start, best.baseline)
    if best is None or not before:
        return None
    own, theirs = best.interval, interval_of(start, best.baseline)
    if row.get("candidate_id") is not None and row["candidate_id"] == start["candidate_id"]:
        return Over(1.0, best.baseline, (1.0, 1.0))
    ends = (own[0] / theirs[1], own[1] / theirs[0]) if own and theirs else None
    return Over(best.ratio / before, best.baseline, ends)


def summarise_models(rows: Sequence[Row]) -> Row:
    """Return the means of each language and arm, and what loop and template add."""
    groups = {}
    for language in sorted({row["language"] for row in rows}):
        of_language = [row for row in rows if row["language"] == language]
        arms = {arm: _arm([row for row in of_language if row["arm"] == arm]) for arm in ARMS}
        pairs = paired(of_language)
        groups[language] = arms | {"template_adds": template_adds(pairs), "pairs": len(pairs)}
    return {"rows": len(rows), "languages": groups}


def ratio_of_run(row: Mapping[str, Any]) -> float | None:
    """Return what a run adds to a mean: its final ratio, 1.0 if it failed, None if not measured."""
    return None if row["status"] == NO_VERDICT else counted_over(row, FLEX)


def _arm(rows: Sequence[Row]) -> Row:
    over = [ratio for row in rows if (ratio := ratio_of_run(row)) is not None]
    gains = [row["loop_over_template"] for row in rows if row["loop_over_template"] is not None]
    return {
        "rows": len(rows),
        "passed": sum(is_result(row) for row in rows),
        "geomean_over_fastest_flex": round(geometric_mean(over), 4) if over else None,
        "compared": len(over),
        "loop_over_template": round(geometric_mean(gains), 4) if gains else None,
        "loop_over_template_ci": _mean_interval(rows),
        "loop_measured": len(gains),
    }


def _mean_interval(rows: Sequence[Row]) -> list[float] | None:
    """Return the geometric means of the lower and of the upper ends; None unless all have both."""
    measured = [row for row in rows if row["loop_over_template"] is not None]
    ends = [row["loop_over_template_ci"] for row in measured if row.get("loop_over_template_ci")]
    if not ends or len(ends) < len(measured):
        return None
    return [round(geometric_mean([pair[i] for pair in ends]), 4) for i in (0, 1)]


def paired(rows: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    """Return the ratios of `started` and `blank` for each problem that both were measured on."""
    ratio = {(row["problem"], row["arm"]): ratio_of_run(row) for row in rows}
    pairs = [
        (ratio.get((problem, "started")), ratio.get((problem, "blank")))
        for problem in sorted({problem for problem, _ in ratio})
    ]
    return [(a, b) for a, b in pairs if a is not None and b is not None]


def template_adds(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return the geometric mean of how much faster kernels get that began with the template."""
    gains = [started / blank for started, blank in pairs]
    return round(geometric_mean(gains), 4) if gains else None
