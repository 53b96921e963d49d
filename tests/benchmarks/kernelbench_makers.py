"""A small made-up results file of KernelBench, as `benchmarks.kernelbench` writes it."""

import copy

from hotloop.core.statistics import geometric_mean, median

MODEL, BUILTIN = "model/as_shipped/cuda", "builtin/as_shipped/cuda"
CURVES = {
    "fast_tier_solve_rate": [[0.0, 0.0], [1.0, 0.5], [2.0, 0.75]],
    "solve_rate": [[0.0, 0.0], [2.0, 0.6]],
    "fast_tier_speedup": [[0.0, 1.0], [1.0, 1.75], [3.0, 2.25]],
}


def made_row(name, ratio=2.0, *, column=MODEL, **changes):
    """Return a verified row that is `ratio` times as fast as both baselines."""
    performance = {
        "latency_ms": 1.0,
        "baselines": {"eager": ratio, "compile": ratio},
        "speedup": {"eager": ratio, "compile": ratio},
        "speedup_ci": {n: [ratio - 0.1, ratio + 0.1] for n in ("eager", "compile")},
        "roofline_frac": 0.5,
    }
    row = {
        "key": f"{column} {name}", "problem": f"kernelbench/{name}", "title": "7_ReLU",
        "generator": column.split("/")[0], "class": "activation", "status": "PASSED", "why": "",
        "undecidable": None, "attempts": 2, "calls": 2, "statuses": ["COMPILE_ERROR", "PASSED"],
        "mode": "replay", "library_anchor": False, "performance": performance,
        "baselines_ms_at_load": {"eager": ratio, "compile": ratio},
    }  # fmt: skip
    return copy.deepcopy(row) | changes


def failed_row(name, **changes):
    """Return a row whose kernel the final tier refused."""
    lost = {"status": "FINAL_INCORRECT_NUMERICAL", "performance": None, "library_anchor": None}
    return made_row(name, **lost) | changes


def made_group(rows, ratios):
    """Return the figures of a group; failures stand in `ratios` as 1.0."""
    solved = sum(row["status"] == "PASSED" for row in rows)
    over = {
        "geometric_mean": geometric_mean(ratios), "median": median(ratios), "wins": solved,
        "over_1.05": solved, "fast_p": {"0": 0.5, "1.5": 0.25}, "best": max(ratios),
        "unclaimed": [], "without": [],
    }  # fmt: skip
    return {
        "problems": len(rows), "correct": solved, "fast_tier_correct": solved,
        "speedup": {name: dict(over) for name in ("eager", "compile", "better_of_both")},
    }  # fmt: skip


def made_column(rows, **changes):
    """Return a column of level 1 from its rows."""
    kept = [row for row in rows if row["undecidable"] is None]
    ratio = [
        1.0 if r["performance"] is None else r["performance"]["speedup"]["eager"] for r in rows
    ]
    of_kept = [x for row, x in zip(rows, ratio, strict=True) if row["undecidable"] is None]
    every = made_group(rows, ratio)
    return {
        "levels": {"1": {"all": every, "decidable": made_group(kept, of_kept)}},
        "together": {"all": every},
        "curves": {"1": {"calls": copy.deepcopy(CURVES) | {"problems": len(kept)}}},
        "by_class": {"level 1: activation": made_group(kept, of_kept)},
        "failures": [],
        "not_solved": [
            {"problem": row["problem"].removeprefix("kernelbench/"), "status": row["status"],
             "why": row["why"], "undecidable": row["undecidable"] is not None}
            for row in rows if row["status"] != "PASSED"
        ],
        "undecidable": [
            {"problem": row["problem"].removeprefix("kernelbench/"), "status": row["status"],
             "reason": row["undecidable"]}
            for row in rows if row["undecidable"] is not None
        ],
        "short_final": [row["problem"] for row in rows if row["status"] == "PASSED"],
    } | changes  # fmt: skip


def made_results(columns):
    """Return a results file; `columns` has rows by column."""
    suites = [
        {"options": {"generator": name.split("/")[0], "device": "cuda", "language": "triton",
                     "model": "somebody"}, "limits": {"max_calls": 4}, "problems": len(rows)}
        for name, rows in columns.items()
    ]  # fmt: skip
    return {
        "command": "make bench-kernelbench", "commit": "0123456789ab", "date": "2026-01-01",
        "environment": {"gpu": "NVIDIA H200", "torch": "2.13.0", "triton": ["3.6.0", "3.9.0"]},
        "rows": [row for rows in columns.values() for row in rows],
        "summary": {
            "columns": {name: made_column(rows) for name, rows in columns.items()},
            "notes": ["a note that a reader must know"],
            "suites": suites,
        },
    }  # fmt: skip
