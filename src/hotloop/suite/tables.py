"""A suite's figures as plain text tables for the terminal. Makes no figure of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hotloop.suite.figures_speed import CLEARLY, THRESHOLDS

UNKNOWN = "unknown"
NONE = "-"
WHY_WIDTH = 100
"""Characters of a reason that a table shows; the figures have all of it."""
Figures = Mapping[str, Any]
Line = Sequence[str]


def suite_tables(figures: Figures) -> str:
    """Return all tables of the figures that `suite_figures` made."""
    parts = ["no runs"] if not figures["columns"] else []
    for name, column in figures["columns"].items():
        parts += [f"== {name} ==", *_column(column)]
    parts += _precision(figures["precision"])
    return "\n\n".join(parts) + "\n"


def _column(column: Figures) -> list[str]:
    groups = {f"level {level}": found for level, found in column["levels"].items()}
    if len(groups) > 1:
        groups["together"] = column["together"]
    has_speed = column["together"]["all"]["speedup"] is not None
    parts = [_correct(groups)]
    if has_speed:
        parts += [_speed(groups, "all"), _speed(groups, "decidable"), _own(groups)]
    else:
        parts.append("No speed: there is none on this device, and no final tier.")
    parts.append(_spent(groups))
    if has_speed:
        parts.append(_memory(groups))
    parts.append(_classes(column["by_class"]))
    parts += _listed(column)
    return parts


def _correct(groups: Figures) -> str:
    lines = [
        (name, which, str(g["problems"]), *_share(g), _statuses(g))
        for name, populations in groups.items()
        for which, g in populations.items()
    ]
    head = ("", "problems", "count", "correct", "%", "fast tier", "statuses")
    return _table("Correct (final tier)", head, lines)


def _share(g: Figures) -> tuple[str, str, str]:
    if g["correct"] is None:
        return NONE, NONE, str(g["fast_tier_correct"])
    return str(g["correct"]), _number(g["correct_percent"], ".1f"), str(g["fast_tier_correct"])


def _statuses(g: Figures) -> str:
    return ", ".join(f"{count} {status}" for status, count in g["statuses"].items()) or NONE


def _speed(groups: Figures, which: str) -> str:
    found = {name: populations[which]["speedup"] for name, populations in groups.items()}
    return _speed_table(f"Speed-up, {which} problems, failures as 1.0", found)


def _own(groups: Figures) -> str:
    found = {n: p["all"]["without_library_anchors"]["speedup"] for n, p in groups.items()}
    counts = [
        f"{name} {p['all']['library_anchors']['yes']}"
        f" ({p['all']['library_anchors']['by_source_alone']} read in the source alone)"
        for name, p in groups.items()
    ]
    title = "Speed-up, all problems, kernels that lean on a library as failures"
    return _speed_table(title, found) + "\nlibrary anchors: " + ", ".join(counts)


def _speed_table(title: str, found: Figures) -> str:
    head = (
        "", "over", "count", *(f"fast_{p:g}" for p in THRESHOLDS), f">{CLEARLY:g}", "wins",
        "geomean", "median", "best", "unclaimed", "left out",
    )  # fmt: skip
    lines = [
        (
            name, baseline, str(s["problems"]), *(_number(v, ".3f") for v in s["fast_p"].values()),
            str(s[f"over_{CLEARLY:g}"]), str(s["wins"]),
            *(_number(s[key], ".3f") for key in ("geometric_mean", "median", "best")),
            str(len(s["unclaimed"])), str(len(s["without"])),
        )
        for name, speedup in found.items()
        for baseline, s in speedup.items()
    ]  # fmt: skip
    return _table(title, head, lines)


def _spent(groups: Figures) -> str:
    wanted = {
        "to_fast_tier_first_correct": "first correct (fast tier)",
        "to_first_correct": "first correct",
        "to_best": "best",
    }
    lines = []
    for name, populations in groups.items():
        for key, title in wanted.items():
            if key in populations["all"]:
                to = populations["all"][key]
                never = str(to["calls"]["never"])
                lines.append((name, title, *(_median(to[axis]) for axis in to), never))
    head = ("", "to", "seconds", "calls", "tokens", "dollars", "never")
    return _table("Spent on a problem, median of those that came there", head, lines)


def _median(to: Figures) -> str:
    if to["median"] is None:
        return UNKNOWN if to["unknown"] else NONE
    return f"{to['median']:g}" + (f" ({to['unknown']} unknown)" if to["unknown"] else "")


def _memory(groups: Figures) -> str:
    found = {n: p["all"]["peak_memory_bytes"] for n, p in groups.items()}
    lines = [
        (name, *(_gib(m[key]) for key in ("median", "most")), str(m["known"]), str(m["unknown"]))
        for name, m in found.items()
    ]
    head = ("", "median GiB", "most GiB", "known", "unknown")
    return _table("Peak memory of verified kernels", head, lines)


def _gib(size_bytes: float | None) -> str:
    return NONE if size_bytes is None else f"{size_bytes / (1 << 30):.2f}"


def _classes(by_class: Figures) -> str:
    lines = []
    for name, g in by_class.items():
        over = (g["speedup"] or {}).get("better_of_both", {})
        mean, wins = _number(over.get("geometric_mean"), ".3f"), str(over.get("wins", NONE))
        lines.append((name, str(g["problems"]), *_share(g), mean, wins))
    head = ("class", "count", "correct", "%", "fast tier", "geomean over better", "wins")
    return _table("By class of operator", head, lines)


def _listed(column: Figures) -> list[str]:
    not_solved = [(n["problem"], n["status"], n["why"][:WHY_WIDTH]) for n in column["not_solved"]]
    open_ones = [(n["problem"], n["status"], n["reason"]) for n in column["undecidable"]]
    return [
        *_failures("Failed verdicts by class", column["failures"]),
        *_failures("Failed verdicts of starting kernels by class", column["start_failures"]),
        *([_table("Not solved", ("problem", "status", "why"), not_solved)] if not_solved else []),
        *(
            [_table("Undecidable: in no target", ("problem", "status", "reason"), open_ones)]
            if open_ones
            else []
        ),
    ]


def _failures(title: str, failures: Sequence[Figures]) -> list[str]:
    lines = [
        (f["status"], f["tier"], f["kind"], f["rule"] or NONE, str(f["attempts"]),
         str(f["problems"]), str(f["unsolved"]), ", ".join(f["examples"]))
        for f in failures
    ]  # fmt: skip
    head = ("status", "tier", "kind", "rule", "attempts", "problems", "unsolved", "examples")
    return [_table(title, head, lines)] if lines else []


def _precision(sides: Sequence[Figures]) -> list[str]:
    parts = []
    for side in sides:
        where = f"{side['generator']}/{side['device']}, level {side['level']}"
        lines = [
            (policy, str(g["problems"]), *_share(g), *_means(g))
            for policy, g in side["policies"].items()
        ]
        head = ("policy", "count", "correct", "%", "fast tier", "over eager", "over better",
                "over eager_tf32")  # fmt: skip
        parts.append(_table(f"Precision policies, {where}, the same problems", head, lines))
    return parts


def _means(g: Figures) -> list[str]:
    speedup = g["speedup"] or {}
    names = ("eager", "better_of_both", "eager_tf32")
    return [_number(speedup.get(name, {}).get("geometric_mean"), ".3f") for name in names]


def _number(value: float | None, how: str) -> str:
    return NONE if value is None else format(value, how)


def _table(title: str, head: Line, lines: Sequence[Line]) -> str:
    """Return a title, and columns as wide as their widest cell."""
    rows = [head, *lines]
    widths = [max(len(row[n]) for row in rows) for n in range(len(head))]
    text = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([title, *text])
