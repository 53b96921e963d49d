"""Rows of a model's attention kernels, and what they say of the loop and of the template.

What the loop adds to the template is the time of the template's kernel over that of the best kernel
of the same run, both at the fast tier of one judge; what the template adds to the loop is the final
ratio of the run that began with it over that of the run that began with nothing. A kernel without a
PASSED final verdict has no final ratio.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.attention_ratios import FLEX, is_result, over_fastest
from benchmarks.pilot_rows import Journal, row_of
from benchmarks.pilot_runs import PilotRun
from benchmarks.pilot_tokens import Counter
from benchmarks.results_file import Row
from hotloop.core.attempt import Action
from hotloop.core.statistics import geometric_mean

ARMS = ("blank", "started")


def model_row(run: PilotRun, journal: Journal, tokens: Counter) -> Row:
    """Return the row of one run, with the fast times of its starting kernel and of its best."""
    row = row_of(run, journal, tokens)
    starts = [a for a in journal.attempts() if a.action == Action.START]
    verdict = starts[0].verdict if starts else None
    fast = [ms for ms in row["fast_ms"] if ms is not None]
    started_ms = None
    if verdict is not None and verdict.performance is not None:
        started_ms = verdict.performance.latency_ms
        fast.append(started_ms)
    best_ms = min(fast, default=None)
    gain = started_ms / best_ms if started_ms and best_ms else None
    return row | {
        "start_fast_ms": started_ms,
        "best_fast_ms": best_ms,
        "loop_over_template": gain,
        "family": run.language,
    }


def summarise_models(rows: Sequence[Row]) -> Row:
    """Return the means of each language and arm, and what loop and template add."""
    groups = {}
    for language in sorted({row["language"] for row in rows}):
        of_language = [row for row in rows if row["language"] == language]
        arms = {arm: _arm([row for row in of_language if row["arm"] == arm]) for arm in ARMS}
        groups[language] = arms | {"template_adds": template_adds(of_language)}
    return {"rows": len(rows), "languages": groups}


def _arm(rows: Sequence[Row]) -> Row:
    over = [o.ratio for row in rows if (o := over_fastest(row, FLEX)) is not None]
    gains = [row["loop_over_template"] for row in rows if row["loop_over_template"] is not None]
    return {
        "rows": len(rows),
        "passed": sum(is_result(row) for row in rows),
        "geomean_over_fastest_flex": round(geometric_mean(over), 4) if over else None,
        "compared": len(over),
        "loop_over_template": round(geometric_mean(gains), 4) if gains else None,
    }


def template_adds(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Return how much faster kernels get that began with the template.

    The geometric mean over the problems that both arms have a final ratio of.
    """
    ratio = {
        (row["problem"], row["arm"]): over.ratio
        for row in rows
        if (over := over_fastest(row, FLEX)) is not None
    }
    both = [p for p, arm in ratio if arm == "started" and (p, "blank") in ratio]
    gains = [ratio[p, "started"] / ratio[p, "blank"] for p in both]
    return round(geometric_mean(gains), 4) if gains else None
