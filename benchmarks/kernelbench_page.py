"""The tables of docs/kernelbench.md, from the results file; the text above them is by hand.

Nothing is claimed that is not in the file, and columns (generator, precision policy, device) are
never mixed. All figures are over decidable problems, but for plain counts and the classes of
failures, which are over all of them and say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.kernelbench_figure import last_call, level_curves, value_at
from benchmarks.kernelbench_problems import ROW_HEAD, level_of, row_line
from benchmarks.readme_kernelbench import (
    NO_RESULTS,
    UNLOADED,
    anchors,
    environment,
    generator_text,
    label,
    less_work,
    level_table,
    prepared,
    reason,
    rows_of_column,
)

BEGIN = "<!-- kernelbench tables: written by benchmarks/readme.py -->"
END = "<!-- end of kernelbench tables -->"
OVER = {"eager": "eager", "compile": "`torch.compile`", "better_of_both": "the better of both"}
CURVES_NOTE = (
    "Over the decidable problems of a level. The final tier is for the best kernels of a run "
    "only: its share says after how many calls a kernel that it confirmed had "
    "been written, not when the first right one was. The speed-up is that of the fast tier, over "
    "the baselines at load; it is no result of the final tier, and a problem without a kernel yet "
    "counts as 1.0."
)
PROBLEMS_NOTE = (
    "Times are those of the final tier. The ratio is over the better of eager and `torch.compile`, "
    "both timed beside the kernel; `counts as 1.00` is a failure, or a kernel whose ratio over one "
    "of them is not claimed. `calls to the first pass` is of the fast tier. `host path`: the final "
    "tier could not replay the kernel's launches without its code. `library call`: the kernel "
    "leaves a product or a convolution to a library. `less work`: by algebra, not all operations "
    "of the reference are done."
)

ASKED = "Of kernels that the generator was asked for, on all problems."
BEGUN = "Of the kernels that runs began from, on all problems; nobody was asked for them here."


def tables(results: Mapping[str, Any] | None, source: Path) -> str:
    """Return the Markdown between the markers; `source` is the file's path in the project."""
    if results is None:
        return NO_RESULTS
    where = environment(results)
    lines = [
        f"{where['gpu']}, driver {where['driver']}, CUDA {where['cuda']}, torch {where['torch']}, "
        f"triton {where['triton']}, Python {where['python']}, isolation {where['isolation']}. "
        f"Source: `{source}`, made by `{results['command']}` at commit `{results['commit']}` of "
        f"{results['date']}; the notes say which commits judged.",
        "",
        "### Notes",
        "",
        *(f"- {note}" for note in results["summary"]["notes"]),
        "",
        "### Decidable problems, by level",
        "",
        *level_table(results),
    ]
    for name, column in results["summary"]["columns"].items():
        rows = rows_of_column(results, name)
        lines += ["", f"### Generator: {label(name)}", "", generator_text(results, name)]
        lines += _column(column, rows)
    return "\n".join(lines)


def _column(column: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    lines: list[str] = []
    if column["together"]["all"]["speedup"] is not None:
        lines += ["", " ".join([*prepared(rows), *anchors(rows), *less_work(rows)])]
        lines += ["", *_counts(column), "", "#### fast_p", "", *_fast_p(column)]
        if any(row["calls"] for row in rows):
            lines += ["", "#### By model calls", "", *_calls(column)]
        lines += ["", "#### By class of operator", "", "Decidable problems.", ""]
        lines += _classes(column["by_class"])
    lines += ["", "#### Failed verdicts on the way", "", *_failures(column["failures"], ASKED)]
    if begun := column.get("start_failures"):  # older results lack it
        lines += ["", "#### Starting kernels that were refused", "", *_failures(begun, BEGUN)]
    lines += ["", "#### Undecidable problems", "", *_undecidable(column)]
    lines += ["", "#### Not solved", "", *_not_solved(column)]
    lines += ["", "#### Every problem", "", PROBLEMS_NOTE]
    for level in sorted({level_of(row) for row in rows}):
        lines += ["", f"Level {level}:", "", *ROW_HEAD]
        lines += [row_line(row) for row in rows if level_of(row) == level]
    return lines


def _counts(column: Mapping[str, Any]) -> list[str]:
    """Return how many problems passed, with the undecidable ones and without."""
    lines = [
        "| level | all | of them correct | decidable | of them correct | fast tier, all |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for level, found in sorted(column["levels"].items()):
        every, mine = found["all"], found["decidable"]
        cells = (level, every["problems"], every["correct"], mine["problems"], mine["correct"],
                 every["fast_tier_correct"])  # fmt: skip
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return lines


def _fast_p(column: Mapping[str, Any]) -> list[str]:
    """Return the share of decidable problems that are faster than p times each baseline."""
    groups = {level: found["decidable"]["speedup"] for level, found in column["levels"].items()}
    steps = next(iter(groups.values()))["eager"]["fast_p"]
    order = sorted(steps, key=float)
    lines = [
        "Share of decidable problems with a correct kernel that is faster than p times the "
        "baseline, strictly.",
        "",
        "| level | over | " + " | ".join(f"p {p}" for p in order) + " | best |",
        "|---|---|" + "---:|" * (len(order) + 1),
    ]
    unclaimed: dict[str, list[str]] = {}
    without: dict[str, list[str]] = {}
    for level, speedup in sorted(groups.items()):
        for name, title in OVER.items():
            found = speedup[name]
            shares = [_percent(found["fast_p"][p]) for p in order]
            best = "" if found["best"] is None else f"{found['best']:.2f}x"
            lines.append(f"| {level} | {title} | " + " | ".join([*shares, best]) + " |")
            for problem in found["unclaimed"]:
                unclaimed.setdefault(problem, []).append(title)
            for problem in found["without"]:
                without.setdefault(problem, []).append(title)
    for problem, titles in unclaimed.items():
        lines += [
            "",
            f"{problem} is correct, but its ratio over {' and '.join(titles)} is not claimed: "
            "it counts as 1.0 at most, and in no fast_p but that for 0.",
        ]
    for problem, titles in without.items():
        lines += ["", f"{problem} is not in the figures over {' and '.join(titles)}: it has none."]
    return lines


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def _calls(column: Mapping[str, Any]) -> list[str]:
    known = {level: level_curves(column, level) for level in sorted(column["levels"])}
    if not any(known.values()):
        return ["It is not known how many calls were spent on the kernels."]
    counts = range(1, last_call(column) + 1)
    lines = [
        CURVES_NOTE,
        "",
        "| level | " + " | ".join(f"{n} calls" if n > 1 else "1 call" for n in counts) + " |",
        "|---|" + "---:|" * len(counts),
    ]
    titles = {
        "fast_tier_solve_rate": "passed the fast tier, failed no final one",
        "solve_rate": "passed the final tier",
        "fast_tier_speedup": "speed-up over the better of both, fast tier",
    }
    for level, curves in known.items():
        for name, title in titles.items() if curves else ():
            assert curves is not None, "only levels with curves are listed"
            values = [value_at(curves[name], n) for n in counts]
            is_share = name.endswith("rate")
            shown = [_percent(v) if is_share else f"{v:.2f}" for v in values]
            lines.append(f"| {level}: {title} | " + " | ".join(shown) + " |")
    return lines


def _classes(by_class: Mapping[str, Any]) -> list[str]:
    lines = [
        "| class | problems | correct | over the better of both | wins |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, found in by_class.items():
        better = found["speedup"]["better_of_both"]
        mean = "" if better["geometric_mean"] is None else f"{better['geometric_mean']:.2f}"
        cells = (name, found["problems"], found["correct"], mean, better["wins"])
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return lines


def _failures(failures: Sequence[Mapping[str, Any]], of: str) -> list[str]:
    if not failures:
        return ["No verdict failed."]
    lines = [
        of,
        "",
        "| status | tier | kind | rule | verdicts | problems | of them unsolved | such as |",
        "|---|---|---|---|---:|---:|---:|---|",
    ]
    for found in failures:
        cells = (
            f"`{found['status']}`", found["tier"], found["kind"], found["rule"] or "",
            found["attempts"], found["problems"], found["unsolved"], ", ".join(found["examples"]),
        )  # fmt: skip
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return lines


def _undecidable(column: Mapping[str, Any]) -> list[str]:
    """Return what was found against problems; their verdicts say little."""
    if not column["undecidable"]:
        return ["None."]
    return [
        "A verdict on these says little. They are in no mean, share or count of wins above.",
        "",
        "| problem | verdict | why it is undecidable |",
        "|---|---|---|",
        *(
            f"| {entry['problem']} | `{entry['status']}` | {_cell(entry['reason'])} |"
            for entry in column["undecidable"]
        ),
    ]


def _not_solved(column: Mapping[str, Any]) -> list[str]:
    if not column["not_solved"]:
        return ["None."]
    return [
        "| problem | status | why |",
        "|---|---|---|",
        *(
            f"| {entry['problem']} | `{entry['status']}` | {_cell(reason(entry, column))} |"
            for entry in column["not_solved"]
        ),
    ]


def _cell(text: str) -> str:
    return text.removeprefix(UNLOADED).replace("|", "/")
