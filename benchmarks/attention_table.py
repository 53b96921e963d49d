"""What the rows of the attention benchmark amount to: a summary, and a table to read.

A reference file (`--reference`) holds times of compiled FlexAttention and of a plain, tuned Triton
kernel that were measured in one session on the same kind of GPU. The ratio that a row needs is then
`NEEDED_FRAC * flex_ms / plain_triton_ms`: as fast as that kernel, within 3 %.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks import attention_targets
from benchmarks.attention_cases import Case
from benchmarks.attention_figure import bars
from benchmarks.attention_ratios import (
    BASELINE,
    FLEX,
    counted_over,
    is_result,
    is_win,
    speedup_of,
)
from benchmarks.results_file import Row
from hotloop.core.statistics import geometric_mean

NEEDED_FRAC = 0.97
FORMULA = "compile"
"""What is compared with where FlexAttention cannot compute the problem."""


def add_reference(rows: Sequence[Row], path: Path) -> None:
    """Put into each row what the reference file says of its problem and sizes, and whether it met.

    Raises:
        OSError, ValueError, KeyError: it cannot be read or has another form.
    """
    known = {
        (entry["variant"], *entry["shape_BHSD"]): entry
        for entry in json.loads(path.read_text(encoding="utf-8"))["rows"]
    }
    for row in rows:
        sizes = (row["workload"][name] for name in "BHSD")
        entry = known.get((row["problem"].removeprefix("attention/"), *sizes))
        if entry is None:
            continue
        needed = NEEDED_FRAC * entry["flex_ms"] / entry["plain_triton_ms"]
        ratio = speedup_of(row)
        row["reference"] = {
            "flex_ms": entry["flex_ms"],
            "plain_triton_ms": entry["plain_triton_ms"],
            "needed_ratio": round(needed, 4),
            "met": ratio is not None and ratio >= needed,
        }


def summarise(
    rows: Sequence[Row],
    *,
    gpus: int,
    skipped: Sequence[Case] = (),
    reasons: Mapping[str, Mapping[str, str]] | None = None,
) -> Row:
    """Return counts, means and targets of the built-in generator's rows.

    Args:
        rows: those measured so far.
        gpus: how many rows ran side by side.
        skipped: rows whose problem file is not there.
        reasons: why targets were missed, by name.
    """
    needles = [row for row in rows if row.get("timed_profile") is not None]
    plain = [row for row in rows if row.get("timed_profile") is None]
    referenced = [row["reference"] for row in rows if "reference" in row]
    described = attention_targets.describe(attention_targets.targets(rows), reasons or {})
    return {
        "rows": len(rows),
        "passed": sum(is_result(row) for row in rows),
        "failed_counted_as_1": [row["row"] for row in rows if not is_result(row)],
        "sizes": len(size_ratios(plain, (BASELINE,))),
        f"geomean_speedup_{BASELINE}": _mean(size_ratios(plain, (BASELINE,))),
        "geomean_speedup_fastest_flex": _mean(size_ratios(plain, FLEX)),
        f"geomean_needles_{BASELINE}": _mean(size_ratios(needles, (BASELINE,))),
        "geomean_needles_fastest_flex": _mean(size_ratios(needles, FLEX)),
        f"wins_over_{BASELINE}": sum(is_win(row) for row in rows),
        "families": dict(Counter(row["family"] for row in rows if row.get("family"))),
        "figure": [bar.to_json() for bar in bars(rows)],
        "targets": described,
        "targets_in_state": attention_targets.counts(described),
        "skipped": {case.key: f"{case.path.name} is not there" for case in skipped},
        "reference_rows": len(referenced),
        "reference_met": sum(entry["met"] for entry in referenced),
        "parallel_runs": gpus,
    }


def size_ratios(rows: Iterable[Row], baselines: Sequence[str]) -> list[float]:
    """Return one ratio for each variant and size: failures as 1.0, packings averaged.

    Sizes that FlexAttention cannot compute, and those whose timing was not believed, have none.
    """
    sizes: dict[tuple[object, ...], list[float]] = {}
    for row in rows:
        ratio = counted_over(row, baselines)
        if ratio is not None:
            size = (row["problem"], row["workload"]["D"], row["workload"]["S"])
            sizes.setdefault(size, []).append(ratio)
    return [geometric_mean(found) for found in sizes.values()]


def _mean(ratios: Sequence[float]) -> float | None:
    return round(geometric_mean(ratios), 4) if ratios else None


def table(rows: Sequence[Row]) -> str:
    """Return one line a row: times, ratios with their interval, and whether the need was met."""
    head = (
        f"{'row':<26} {'ours ms':>8} {'flex ms':>8} {'ratio':>6} {'interval':>14} "
        f"{'tuned':>6} {'cudnn':>6} {'family':>8} {'mode':>9} {'cand.':>5} {'needed':>6} met"
    )
    return "\n".join([head, *(_line(row) for row in rows)])


def _line(row: Row) -> str:
    baseline = next((b for b in (BASELINE, FORMULA) if speedup_of(row, b) is not None), None)
    if baseline is None:
        why = row.get("error") or row.get("message") or ""
        return f"{row['row']:<26} {row['status']} {why}"[:160]
    performance = row["performance"]
    low, high = performance["speedup_ci"].get(baseline, (float("nan"),) * 2)
    entry = row.get("reference")
    needed = f"{entry['needed_ratio']:>6.3f} {'yes' if entry['met'] else 'no'}" if entry else ""
    line = (
        f"{row['row']:<26} {performance['latency_ms']:>8.4f} "
        f"{performance['baselines'][baseline]:>8.4f} {_ratio(row, baseline):>6} "
        f"[{low:>5.3f}, {high:>5.3f}] "
        f"{_ratio(row, 'flex_max_autotune'):>6} {_ratio(row, 'cudnn'):>6} "
        f"{row.get('family') or '':>8} {row['mode'] or '':>9} {row['candidates']:>5} {needed}"
    )
    return line.rstrip() if baseline == BASELINE else f"{line.rstrip()} (over {baseline})"


def _ratio(row: Row, baseline: str) -> str:
    ratio = speedup_of(row, baseline)
    return "" if ratio is None else f"{ratio:.3f}"


def smoke_table(rows: Sequence[Row]) -> str:
    """Return one line a row of a run without a GPU: what passed; there is no time to show."""
    return "\n".join(
        f"{row['row']:<26} {row['status']} {row.get('verdicts', '')} {row['error'] or ''}".rstrip()
        for row in rows
    )
