"""The README's paragraph and table on the model pilot, from its results file.

Nothing is claimed here that is not in the file; which kernels are counted, and how, is decided in
`pilot_summary.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.pilot_runs import MAIN

BEGIN = "<!-- model results: written by benchmarks/readme.py -->"
END = "<!-- end of model results -->"
NO_RESULTS = "No results of a model are published with this version yet."
TITLES = {"attention": "attention variants", "level 1": "KernelBench level 1",
          "level 2": "KernelBench level 2"}  # fmt: skip

SEEN = {
    "sample": "nothing: independent drafts",
    "execution": "its code and what was wrong",
    "performance": "and times, resources, counters",
    "main": "and what was tried, failed and won",
}
NO_FINAL = "NO_FINAL"
Group = Mapping[str, Any]


def pilot_section(results: Mapping[str, Any] | None, source: Path) -> str:
    """Return the Markdown between the markers; `source` is the file's path in the project."""
    if results is None:
        return NO_RESULTS
    summary, where = results["summary"], results["environment"]
    groups = [(TITLES[name], summary["by_level"][name]) for name in TITLES]
    if summary["cuda"]["rows"]:
        groups.append(("6 of these in CUDA C++", summary["cuda"]))
    calls = max(row["calls"] for row in results["rows"])
    main = [row for row in results["rows"] if row["arm"] == MAIN]
    unfinished = sum(row["status"] == NO_FINAL for row in main)
    answered = next(row["model"] for row in results["rows"] if row["model"])
    return "\n".join(
        [
            "| problems | verified | calls to the first right one | over eager | over the fastest "
            "baseline | wins |",
            "|---|---:|---:|---:|---:|---:|",
            *(_line(title, group) for title, group in groups),
            "",
            f"Model: {answered}; strategy `refine`, at most {calls} calls a problem, Triton where "
            f"nothing else is said, {where['gpu']}, torch {where['torch']}, triton "
            f"{where['triton']}, {results['date']}. Speed-ups are geometric means at the final "
            "tier, a problem without a verified kernel counts as 1.0; baselines are eager, "
            "`torch.compile`, FlexAttention, cuDNN and SDPA where they apply; a win is a lower end "
            f"of the interval over 1.02. {_missing(unfinished)}Source: `{source}`, made by "
            f"`{results['command']}`; what else a reader must know stands in its `notes`.",
            *_ablation(summary["ablation"]),
        ]
    )


def _missing(unfinished: int) -> str:
    if not unfinished:
        return ""
    who = "1 run has" if unfinished == 1 else f"{unfinished} runs have"
    return f"The pilot is not complete: {who} no final verdict yet. "


def _ablation(found: Group) -> list[str]:
    """Return the lines on what the model saw; none where that was not compared."""
    arms = found["arms"]
    if not arms:
        return []
    shared = min(len(arm["speedup_after"]) for arm in arms.values())
    lines = [
        "",
        f"What the model sees of its earlier tries, on {len(found['problems'])} of these problems, "
        f"one run each (fast tier, over the fastest baseline, after 1 and {shared} calls; then the "
        "final tier):",
        "",
        f"| it sees | after 1 call | after {shared} calls | final | final check passed |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, title in SEEN.items():
        if name in arms:
            arm, after = arms[name], arms[name]["speedup_after"]
            lines.append(
                f"| {title} | {after[0]:.2f} | {after[shared - 1]:.2f} | "
                f"{arm['speedup']['geometric_mean']:.2f} | "
                f"{arm['correct']} of {len(found['problems'])} |"
            )
    return lines


def _line(title: str, group: Group) -> str:
    speedup, rounds = group["speedup"], group["rounds_to_first_correct"]
    cells: Sequence[str] = (
        title,
        f"{group['correct']} of {group['rows']}",
        "" if rounds["median"] is None else f"{rounds['median']:g} (median)",
        _ratio(speedup.get("eager"), group["rows"]),
        _ratio(speedup["fastest"], group["rows"]),
        f"{speedup['fastest']['wins']} of {group['rows']}",
    )
    return "| " + " | ".join(cells) + " |"


def _ratio(over: Group | None, rows: int) -> str:
    """Return the mean; nothing where some of the group's kernels were not measured beside it."""
    if over is None or over["geometric_mean"] is None or over["rows"] != rows:
        return ""
    return f"{over['geometric_mean']:.2f}"
