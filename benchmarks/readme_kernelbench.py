"""The README's part on KernelBench, and the table by level that docs/kernelbench.md shares with it.

Every figure is over decidable problems, a problem without a verified kernel counting as 1.0; counts
of all problems stand beside them. Nothing is claimed that is not in the results file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.kernelbench_problems import (
    LESS_WORK_OVER,
    column_of,
    is_decidable,
    level_of,
    mean_over_better,
    name_of,
    with_less_work,
    with_prepare,
)
from hotloop.core.statistics import geometric_mean
from hotloop.suite.figures_rows import FAST_TIER_PASSED, PASSED

BEGIN = "<!-- kernelbench results: written by benchmarks/readme.py -->"
END = "<!-- end of kernelbench results -->"
NO_RESULTS = "No results of KernelBench are published with this version yet."
LANGUAGES = {"triton": "Triton", "gluon": "Gluon", "cuda": "CUDA C++"}
FINAL = "FINAL_"
"""Begins the status of a kernel that the final tier refused."""
FINAL_KINDS = {"nonfinite": "NaN or infinity where the reference has numbers",
               "wrong_values": "wrong values"}  # fmt: skip
UNLOADED = "ProblemError: "
WAITING = "waiting:"
PAGE = "docs/kernelbench.md"
WORDS = {1: "one call", 32: "32 calls"}
Figures = Mapping[str, Any]


def kernelbench_section(results: Figures | None, source: Path) -> str:
    """Return the Markdown between the markers; `source` is the file's path in the project."""
    if results is None:
        return NO_RESULTS
    columns = results["summary"]["columns"]
    told = [line for name in columns for line in _column_lines(results, name)]
    where = environment(results)
    return "\n".join(
        [
            *level_table(results),
            "",
            "Over the decidable problems: those whose outputs tell a right kernel from a wrong "
            "one. `better of both` is the faster of eager and `torch.compile`, problem by problem; "
            "means are geometric, a problem without a verified kernel counts as 1.0; a win is a "
            "lower end of the 95 % interval over 1.02.",
            "",
            *told,
            "",
            f"{where['gpu']}, torch {where['torch']}, triton {where['triton']}, "
            f"{results['date']}. Source: `{source}`, made by `{results['command']}`. "
            "[Every problem, fast_p, failures, what was found wrong with these kernels, and what "
            f"the figures are not]({PAGE}).",
        ]
    )


def level_table(results: Figures) -> list[str]:
    """Return a line for each level of each column, over decidable problems."""
    lines = [
        "| KernelBench | problems | correct | over 1.05x eager | mean over eager "
        "| over `torch.compile` | over the better of both | median | wins |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, column in results["summary"]["columns"].items():
        for level, populations in sorted(column["levels"].items()):
            lines.append(_level_line(f"level {level}, {label(name)}", populations["decidable"]))
    return lines


def _level_line(title: str, group: Figures) -> str:
    speedup = group["speedup"]
    if speedup is None:  # on a CPU, where there is no final tier
        return f"| {title} | {group['problems']} | | | | | | | |"
    better = speedup["better_of_both"]
    cells = (
        title, group["problems"], group["correct"], speedup["eager"]["over_1.05"],
        *(_number(speedup[name]["geometric_mean"]) for name in ("eager", "compile")),
        _number(better["geometric_mean"]), _number(better["median"]), better["wins"],
    )  # fmt: skip
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def label(column: str) -> str:
    """Return `model`, with the precision policy and the device where they are not the usual ones.

    Raises:
        ValueError: the column's key is not `generator/precision/device`.
    """
    generator, precision, device = _parts(column)
    told = [generator, *([precision] if precision != "as_shipped" else []),
            *([device] if device != "cuda" else [])]  # fmt: skip
    return ", ".join(told)


def _parts(column: str) -> tuple[str, str, str]:
    parts = column.split("/")
    if len(parts) != 3:
        raise ValueError(f"expected a column generator/precision/device, got {column!r}")
    return parts[0], parts[1], parts[2]


def environment(results: Figures) -> dict[str, str]:
    """Return where kernels were judged; several values of one thing are joined by `and`."""
    names = ("gpu", "driver", "cuda", "torch", "triton", "python", "isolation")
    found = {}
    for name in names:
        value = results["environment"].get(name) or "unknown"
        found[name] = value if isinstance(value, str) else " and ".join(value)
    return found


def rows_of_column(results: Figures, name: str) -> list[Figures]:
    """Return the rows of one column."""
    return [row for row in results["rows"] if column_of(row) == name]


def generator_text(results: Figures, name: str) -> str:
    """Return who wrote the kernels of a column, and with how many calls."""
    generator, _, device = parts = _parts(name)
    suites = [s for s in results["summary"]["suites"] if _suite_parts(s["options"]) == parts]
    if generator != "model" or not suites:
        rows = rows_of_column(results, name)
        covered = sum(row["attempts"] > 0 for row in rows)
        passed = sum(row["status"] in (PASSED, FAST_TIER_PASSED) for row in rows)
        tier = "fast" if device == "cpu" else "final"
        who = "Built-in generator (human-written templates, no model)"
        return (
            f"{who if generator == 'builtin' else f'Generator: {generator}'}: it wrote kernels for "
            f"{covered} of {len(rows)} problems, and {passed} passed the {tier} tier."
        )
    models = sorted({str(suite["options"]["model"]) for suite in suites})
    languages = sorted({one for s in suites for one in str(s["options"]["language"]).split(", ")})
    calls = [suite["limits"]["max_calls"] for suite in suites]
    most = f"at most {max(calls)} model calls a problem" if all(calls) else "calls not limited"
    most += _made(rows_of_column(results, name))
    if all(_only_verifies(suite) for suite in suites):
        most = "kernels of an earlier suite, verified again and not changed"
    return (
        f"Generator: a model ({', '.join(models)}), {most}, "
        f"{', '.join(LANGUAGES.get(name, name) for name in languages)}."
        f"{_began_from(suites, rows_of_column(results, name))}"
    )


def _made(rows: Sequence[Figures]) -> str:
    """Return how many calls were made, which may be fewer than the limit of a suite."""
    made = sorted({row["calls"] for row in rows if row["calls"]})
    return f" ({made[0]} to {made[-1]} were made)" if len(made) > 1 else ""


def _suite_parts(options: Figures) -> tuple[str, str, str]:
    """Return the column of a suite; it names its precision where that is not the usual one."""
    precision = str(options.get("precision", "as_shipped"))
    return str(options["generator"]), precision, str(options["device"])


def _only_verifies(suite: Figures) -> bool:
    """Whether each problem had the kernel that it began from, and no other."""
    return bool(suite.get("starts", {}).get("only"))


def _began_from(suites: Sequence[Figures], rows: Sequence[Figures]) -> str:
    """Return what suites began from, and where that is still their best; nothing where none did."""
    starts = [suite["starts"] for suite in suites if "starts" in suite]
    if not starts:
        return ""
    many = sum(one["kernels"] for one in starts)
    authors = ", ".join(sorted({author for one in starts for author in one["of"]}))
    passed = [row for row in rows if row["status"] in (PASSED, FAST_TIER_PASSED)]
    same = sum(bool(row.get("best_is_start")) for row in passed)
    return (
        f" It began from {many} verified kernel(s) of an earlier suite, written by {authors}; what "
        f"was spent on those is not counted. In {same} of {len(passed)} solved problems the best "
        "kernel is the one that it began from."
    )


def _column_lines(results: Figures, name: str) -> list[str]:
    column = results["summary"]["columns"][name]
    rows = rows_of_column(results, name)
    told = [generator_text(results, name)]
    if column["together"]["all"]["correct"] is not None:
        told[0] += f" {_final_tier(column)}"
        told.append(_raw(column))
        told += prepared(rows)
        told.append(" ".join([*anchors(rows), *less_work(rows)]))
        told += _open(column)
    return [f"- {text}" for text in told]


def _final_tier(column: Figures) -> str:
    short, solved = len(column["short_final"]), column["together"]["all"]["correct"]
    if short == solved:
        return (
            f"All {solved} verified kernels passed the short final tier (the notes on the page say "
            "which commits judged, and what was judged twice)."
        )
    return f"{short} of {solved} verified kernels passed the short final tier, the others the full."


def _raw(column: Figures) -> str:
    counts = " and ".join(
        f"{found['all']['correct']} of {found['all']['problems']} of level {level}"
        for level, found in sorted(column["levels"].items())
    )
    listed = [entry["problem"] for entry in column["undecidable"]]
    if not listed:
        return f"No problem is undecidable; {counts} passed."
    return f"With those that are undecidable ({', '.join(listed)}) {counts} passed."


def anchors(rows: Sequence[Figures]) -> list[str]:
    """Return which verified kernels leave products to a library; they count in."""
    mine = [name_of(row) for row in rows if row["library_anchor"] and is_decidable(row)]
    if not mine:
        return ["No decidable problem's kernel keeps a library call."]
    if len(mine) == 1:
        return [f"The kernel of {mine[0]} keeps a library call, and counts in."]
    return [f"The kernels of {', '.join(mine)} keep a library call, and count in."]


def prepared(rows: Sequence[Figures]) -> list[str]:
    """Return what the means are with `prepare()` in them, which is run once and is in no time."""
    told = []
    for calls in WORDS:
        means = []
        for level in sorted({level_of(row) for row in rows}):
            mine = [row for row in rows if level_of(row) == level and is_decidable(row)]
            ratios = [r for r in (with_prepare(row, calls) for row in mine) if r is not None]
            if ratios:
                means.append(f"{_number(geometric_mean(ratios))} on level {level}")
        told.append(f"{' and '.join(means)} where it runs once for {WORDS[calls]}")
    return [
        "What a kernel does once in `prepare()` (packing weights, mostly) is not in its time; with "
        f"it the mean over the better of both is {', and '.join(told)}."
    ]


def less_work(rows: Sequence[Figures]) -> list[str]:
    """Return which kernels do less work than the reference, with the means without them."""
    mine = with_less_work(rows)
    if not mine:
        return []
    names = [name_of(row) for row in mine]
    lines = []
    for level in sorted({level_of(row) for row in mine}):
        rest = [
            row
            for row in rows
            if level_of(row) == level and is_decidable(row) and name_of(row) not in names
        ]
        mean = _number(mean_over_better(rest))
        lines.append(f"the mean of level {level} over the better of both is {mean}")
    return [
        f"At least the kernels of {', '.join(names)} need less work than the reference, by algebra "
        f"(over {LESS_WORK_OVER:g} times the device's bound for the reference's operations; the "
        f"page names more); without them {' and '.join(lines)}."
    ]


def _open(column: Figures) -> list[str]:
    reasons = [f"{entry['problem']} ({reason(entry, column)})" for entry in column["not_solved"]]
    return [f"Not solved: {'; '.join(reasons)}."] if reasons else ["None is left unsolved."]


def reason(entry: Figures, column: Figures) -> str:
    """Return in one clause why a problem has no verified kernel.

    What the final tier found stands with the class of failures; a run that waits says only that.
    """
    final = [
        found
        for found in (*column["failures"], *column.get("start_failures", ()))
        if found["tier"] == "final" and entry["problem"] in found["examples"]
    ]
    kinds = dict.fromkeys(FINAL_KINDS.get(found["kind"], found["kind"]) for found in final)
    clauses = [f"refused by the final tier: {kind}" for kind in kinds]
    why = str(entry["why"])
    if why.startswith(WAITING):
        clauses.append("another kernel waits for its verdict")
    elif not clauses and str(entry["status"]).startswith(FINAL):  # examples name a few problems
        clauses.append(f"refused by the final tier: {entry['status'].removeprefix(FINAL)}")
    elif not clauses:
        clauses.append(why.removeprefix(UNLOADED).split(";")[0] or entry["status"])
    return ", ".join([*(["undecidable"] if entry["undecidable"] else []), *clauses])
