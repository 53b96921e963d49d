"""What the rows of the verifier's benchmark amount to: percentiles, targets, a table to read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.results_file import Row
from hotloop.core.statistics import quantile

RELU = "kernelbench/1/19"
"""The problem that KernelBench's own harness needs 53 to 56 s for with a Triton kernel."""
EARLY = ("static", "compile", "wrong")
TARGETS = {
    "gpu_p50_s": 1.5, "gpu_p90_s": 6.0, "early_failure_max_s": 1.0, "relu_wall_s": 4.0,
}  # fmt: skip
"""Seconds. GPU: exclusive use by one new candidate that passes the fast tier. Early failure: a
rejection by the static rules or by the compiler, wall clock."""


def summarise(rows: Sequence[Row], *, parallel_judges: int, cpu_cores: int) -> Row:
    """Return percentiles over new sources that passed, early failures, and the targets."""
    passed = [v for _, v in _verdicts(rows, "new") if v["status"] == "PASSED"]
    early = {what: [v["wall_s"] for _, v in _verdicts(rows, what)] for what in EARLY}
    relu = [
        v["wall_s"] for row, v in _verdicts(rows, "new")
        if row["problem"] == RELU and v["status"] == "PASSED"
    ]  # fmt: skip
    summary: Row = {
        "problems": sum(row["what"] == "verdicts" for row in rows),
        "failed_problems": sum(row["error"] is not None for row in rows),
        "unexpected_verdicts": [text for row in rows for text in unexpected(row)],
        "new_passed": len(passed),
        "gpu_s": _percentiles([v["gpu_s"] for v in passed]),
        "wall_s": _percentiles([v["wall_s"] for v in passed]),
        "early_failure_s": {what: _percentiles(values) for what, values in early.items()},
        "relu_wall_s": _percentiles(relu),
        "cold_first_s": _percentiles([r["cold_first_s"] for r in rows if "cold_first_s" in r]),
        "cpu_input_draw": next((r for r in rows if r["what"] == "cpu_draw"), None),
        "parallel_judges": parallel_judges,
        "cpu_cores": cpu_cores,
    }
    return summary | {"targets": _targets(summary, early["static"] + early["compile"])}


def unexpected(row: Row) -> Iterator[str]:
    """Yield what a verdict of this row should not have been: the figures would be of other work."""
    expected = {
        "cold": "PASSED", "new": "PASSED", "static": "REJECTED_STATIC",
        "compile": "COMPILE_ERROR", "wrong": "INCORRECT_NUMERICAL",
    }  # fmt: skip
    for verdict in row.get("verdicts", ()):
        if verdict["status"] != expected[verdict["what"]]:
            status, message = verdict["status"], verdict["message"]
            yield f"{row['problem']} {verdict['what']}: {status}: {message[:120]}"


def _verdicts(rows: Sequence[Row], what: str) -> Iterator[tuple[Row, Row]]:
    for row in rows:
        for verdict in row.get("verdicts", ()):
            if verdict["what"] == what:
                yield row, verdict


def _percentiles(values: Sequence[float]) -> Row | None:
    if not values:
        return None
    places = {"p50": 0.5, "p90": 0.9, "max": 1.0}
    found = {name: round(quantile(values, share), 3) for name, share in places.items()}
    return {"n": len(values), **found}


def _targets(summary: Row, early: Sequence[float]) -> Row:
    gpu, relu = summary["gpu_s"], summary["relu_wall_s"]
    values = {
        "gpu_p50_s": gpu and gpu["p50"],
        "gpu_p90_s": gpu and gpu["p90"],
        "early_failure_max_s": round(max(early), 3) if early else None,
        "relu_wall_s": relu and relu["max"],
    }
    return {
        name: {"limit": limit, "value": values[name], "met": _below(values[name], limit)}
        for name, limit in TARGETS.items()
    }


def _below(value: float | None, limit: float) -> bool | None:
    return None if value is None else value < limit


def table(rows: Sequence[Row]) -> str:
    """Return one line a problem: GPU and wall seconds of new sources, failures, the cold start."""
    head = f"{'problem':<24} {'gpu s':>20} {'wall s':>20} {'static compile wrong':>20} {'cold':>6}"
    return "\n".join([head, *(_line(row) for row in rows if row["what"] == "verdicts")])


def _line(row: Row) -> str:
    if row["error"] is not None and not row.get("verdicts"):
        return f"{row['problem']:<24} {row['error']}"[:160]

    def seconds(what: str, key: str) -> list[str]:
        return [f"{v[key]:.2f}" for _, v in _verdicts([row], what)]

    gpu, wall = " ".join(seconds("new", "gpu_s")), " ".join(seconds("new", "wall_s"))
    early = " ".join(s for what in EARLY for s in seconds(what, "wall_s"))
    cold = f"{row['cold_first_s']:.1f}" if "cold_first_s" in row else ""
    notes = "; ".join([*unexpected(row), *([row["error"]] if row["error"] else [])])
    return f"{row['problem']:<24} {gpu:>20} {wall:>20} {early:>20} {cold:>6} {notes}".rstrip()


def smoke_table(rows: Sequence[Row]) -> str:
    """Return one line a problem of a run without a GPU: statuses, no times."""
    lines = []
    for row in rows:
        statuses = " ".join(f"{v['what']}:{v['status']}" for v in row.get("verdicts", ()))
        lines.append(f"{row['problem']:<24} {statuses} {row['error'] or ''}".rstrip())
    return "\n".join(lines)
