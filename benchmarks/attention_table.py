"""What the rows of the attention benchmark amount to: a summary, and a table to read.

A reference file (`--reference`) holds times of compiled FlexAttention and of a plain, tuned Triton
kernel that were measured in one session on the same kind of GPU. The ratio that a row needs is then
`NEEDED_FRAC * flex_ms / plain_triton_ms`: as fast as that kernel, within 3 %.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.results_file import Row
from hotloop.core.statistics import geometric_mean

BASELINE = "flex"
NEEDED_FRAC = 0.97
WIN_OVER = 1.02
"""A row is a win when the lower end of its interval is over this."""


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


def speedup_of(row: Row, baseline: str = BASELINE) -> float | None:
    """Return the final tier's ratio over a baseline; None where there is none."""
    if row["status"] != "PASSED" or not row["performance"]:
        return None
    ratio: float | None = row["performance"]["speedup"].get(baseline)
    return ratio


def summarise(rows: Sequence[Row], *, parallel_runs: int, budget: str) -> Row:
    """Return counts and the geometric mean of the speed-up over compiled FlexAttention."""
    ratios = [r for row in rows if (r := speedup_of(row)) is not None]
    lows = [
        row["performance"]["speedup_ci"].get(BASELINE, (0.0, 0.0))[0]
        for row in rows
        if speedup_of(row) is not None
    ]
    referenced = [row["reference"] for row in rows if "reference" in row]
    return {
        "rows": len(rows),
        "passed": len(ratios),
        f"geomean_speedup_{BASELINE}": round(geometric_mean(ratios), 4) if ratios else None,
        f"wins_over_{BASELINE}": sum(low > WIN_OVER for low in lows),
        "reference_rows": len(referenced),
        "reference_met": sum(entry["met"] for entry in referenced),
        "parallel_runs": parallel_runs,
        "budget": budget,
    }


def table(rows: Sequence[Row]) -> str:
    """Return one line a row: times, ratios with their interval, and whether the need was met."""
    head = (
        f"{'row':<13} {'ours ms':>8} {'flex ms':>8} {'ratio':>6} {'interval':>14} "
        f"{'cudnn':>6} {'mode':>9} {'cand.':>5} {'needed':>6} met"
    )
    return "\n".join([head, *(_line(row) for row in rows)])


def _line(row: Row) -> str:
    ratio = speedup_of(row)
    if ratio is None:
        why = row.get("error") or row.get("message") or ""
        return f"{row['row']:<13} {row['status']} {why}"[:160]
    performance = row["performance"]
    low, high = performance["speedup_ci"].get(BASELINE, (float("nan"),) * 2)
    cudnn = speedup_of(row, "cudnn")
    entry = row.get("reference")
    needed = f"{entry['needed_ratio']:>6.3f} {'yes' if entry['met'] else 'no'}" if entry else ""
    return (
        f"{row['row']:<13} {performance['latency_ms']:>8.4f} "
        f"{performance['baselines'][BASELINE]:>8.4f} {ratio:>6.3f} [{low:>5.3f}, {high:>5.3f}] "
        f"{'' if cudnn is None else f'{cudnn:.3f}':>6} {row['mode'] or '':>9} "
        f"{row['candidates']:>5} {needed}"
    )


def smoke_table(rows: Sequence[Row]) -> str:
    """Return one line a row of a run without a GPU: what passed; there is no time to show."""
    return "\n".join(
        f"{row['row']:<13} {row['status']} {row.get('verdicts', '')} {row['error'] or ''}".rstrip()
        for row in rows
    )
