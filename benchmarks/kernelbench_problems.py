"""What one row of the KernelBench results says: its ratio as it counts, its first pass, its marks.

The figures of a level come from the file's summary. What the summary does not hold, the interval of
a single problem and a mean over some, is made here from the rows by the summary's own rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hotloop.core.statistics import geometric_mean
from hotloop.report.metrics import WIN_OVER
from hotloop.suite.figures_rows import PASSED

Row = Mapping[str, Any]
BOTH = ("eager", "compile")
LESS_WORK_OVER = 20.0
"""A kernel over this many times the device's bound does less work than the reference asks for."""
ROW_HEAD = (
    "| problem | kernel ms | eager ms | compile ms | over the better of both [95 %] "
    "| calls to the first pass | status |",
    "|---|---:|---:|---:|---|---:|---|",
)


@dataclass(frozen=True, slots=True)
class Counted:
    """How a problem counts beside the better of eager and `torch.compile`."""

    ratio: float
    """Baseline over kernel; 1.0 for a failure, at most 1.0 where no ratio is claimed."""
    interval: tuple[float, float] | None
    """95 %; None for a failure and where no ratio is claimed."""

    @property
    def is_win(self) -> bool:
        """Whether the lower end of the interval is over the limit of a win."""
        return self.interval is not None and self.interval[0] > WIN_OVER


def name_of(row: Row) -> str:
    """Return `1/19`: level and number."""
    return str(row["problem"]).removeprefix("kernelbench/")


def level_of(row: Row) -> str:
    """Return the level, as the summary's keys have it."""
    return name_of(row).split("/")[0]


def column_of(row: Row) -> str:
    """Return the key of its column in the summary."""
    return str(row["key"]).rsplit(" ", 1)[0]


def is_decidable(row: Row) -> bool:
    """Whether nothing was found against the problem."""
    return row["undecidable"] is None


def with_prepare(row: Row, calls: int) -> float | None:
    """Return the ratio over the better baseline with one `prepare()` for so many calls, 1 or 32.

    None where the row has no baseline at all; a kernel without `prepare` has its plain ratio.
    """
    plain = over_better(row)
    if plain is None or row["status"] != PASSED or not row["performance"]:
        return None if plain is None else plain.ratio
    known = row["performance"].get("speedup_with_prepare") or {}
    found = [known[name][str(calls)] for name in BOTH if str(calls) in known.get(name, {})]
    return min(found, default=plain.ratio)


def over_better(row: Row) -> Counted | None:
    """Return how a row counts beside the better baseline; None where it has no baseline at all.

    The rules are those of `hotloop.suite.figures_speed`: the least ratio over the baselines that
    the problem has; a win over the faster one is a win over each.
    """
    present = [name for name in BOTH if _has(row, name)]
    if not present:
        return None
    if row["status"] != PASSED or not row["performance"]:
        return Counted(1.0, None)
    found = [_over(row["performance"], name) for name in present]
    ratio = min(one.ratio for one in found)
    intervals = [one.interval for one in found if one.interval is not None]
    if len(intervals) < len(found):
        return Counted(ratio, None)
    return Counted(ratio, (min(low for low, _ in intervals), min(high for _, high in intervals)))


def _has(row: Row, name: str) -> bool:
    performance = row["performance"] or {}
    if name in performance.get("baselines", ()) or name in performance.get("speedup", ()):
        return True
    return not row["baselines_ms_at_load"] or name in row["baselines_ms_at_load"]


def _over(performance: Mapping[str, Any], name: str) -> Counted:
    ratio = performance["speedup"].get(name)
    interval = performance.get("speedup_ci", {}).get(name)
    if ratio is not None and interval is not None:
        return Counted(ratio, (interval[0], interval[1]))
    if ratio is None and name in performance["baselines"]:
        ratio = performance["baselines"][name] / performance["latency_ms"]
    return Counted(1.0 if ratio is None else min(ratio, 1.0), None)


def mean_over_better(rows: Sequence[Row]) -> float | None:
    """Return the geometric mean over the better baseline, failures as 1.0; None without rows."""
    counted = [over_better(row) for row in rows]
    ratios = [one.ratio for one in counted if one is not None]
    return geometric_mean(ratios) if ratios else None


def calls_to_first_pass(row: Row) -> int | None:
    """Return after how many model calls a kernel first passed the fast tier.

    None where none did, and where verdicts are not one for each call (a generator without a model).
    """
    statuses = row["statuses"]
    if not row["calls"] or len(statuses) != row["calls"] or PASSED not in statuses:
        return None
    return int(statuses.index(PASSED)) + 1


def with_less_work(rows: Sequence[Row]) -> list[Row]:
    """Return the decidable rows whose kernels cannot do all the operations of the reference."""
    return [
        row
        for row in rows
        if is_decidable(row)
        and row["performance"]
        and (row["performance"].get("roofline_frac") or 0.0) > LESS_WORK_OVER
    ]


def row_line(row: Row) -> str:
    """Return one line of the table of every problem; one without a kernel keeps its place."""
    title = str(row["title"]).split("_", 1)[-1].replace("|", "/")
    performance = row["performance"] or {}
    calls = calls_to_first_pass(row)
    cells = (
        f"{name_of(row)} {title}",
        _ms(performance.get("latency_ms")),
        *(_ms(performance.get("baselines", {}).get(name)) for name in BOTH),
        _ratio(row),
        "" if calls is None else str(calls),
        ", ".join([f"`{row['status']}`", *_marks(row)]),
    )
    return "| " + " | ".join(cells) + " |"


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _ratio(row: Row) -> str:
    counted = over_better(row)
    if counted is None:
        return ""
    if counted.interval is None:
        return f"counts as {counted.ratio:.2f}"
    return f"{counted.ratio:.2f} [{counted.interval[0]:.2f}, {counted.interval[1]:.2f}]"


def _marks(row: Row) -> list[str]:
    """Return what a reader must know of one row, a word or two each."""
    counted = over_better(row)
    unclaimed = row["status"] == PASSED and counted is not None and counted.interval is None
    found = {
        "undecidable": not is_decidable(row),
        "ratio not claimed": unclaimed,
        "host path": row["mode"] == "host_path",
        "library call": bool(row["library_anchor"]),
        "less work": bool(with_less_work([row])),
    }
    return [mark for mark, holds in found.items() if holds]
