"""A suite's figures as tables of cells. Makes no figure of its own.

A mean over problems of which none has a verified kernel is a mean of nothing but the 1.0 that
failures count as: it is shown as not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hotloop.report import display
from hotloop.report.plots import BASELINE_NAMES

Figures = Mapping[str, Any]
POPULATIONS = ("all", "rankable", "decidable")
WHY_CHARACTERS = 160
_AXES: dict[str, tuple[str, Callable[[float | None], str]]] = {
    "time_s": ("time", display.seconds),
    "calls": ("calls", display.count),
    "tokens": ("tokens", display.count),
    "usd": ("dollars", display.dollars),
}
_REACHED = {
    "to_fast_tier_first_correct": "first correct, fast tier",
    "to_first_correct": "first correct, final tier",
    "to_best": "best",
}


@dataclass(frozen=True, slots=True)
class Link:
    """A cell that leads to a place in the page."""

    text: str
    href: str


Cell = str | Link


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; the first `labels` columns are text, the others numbers."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    labels: int = 1
    note: str = ""
    is_long: bool = False
    """A list that is closed until it is asked for."""


def groups_of(column: Figures) -> dict[str, Figures]:
    """Return the populations by level, and all levels together where there are several."""
    groups: dict[str, Figures] = {f"level {n}": found for n, found in column["levels"].items()}
    return groups | ({"all levels": column["together"]} if len(groups) > 1 else {})


def is_judged(group: Figures) -> bool:
    """Whether any problem of a group has a final verdict, or waits for none."""
    open_ones = group["waiting"] + group["statuses"].get("NO_RUN", 0)
    is_final = any(s == "PASSED" or s.startswith("FINAL_") for s in group["statuses"])
    return is_final or bool(group["problems"] > open_ones)


def correct_table(groups: Figures) -> Table:
    """Return how many problems are solved, by level and population."""
    rows = []
    for name, populations in groups.items():
        for which in POPULATIONS:
            group = populations[which]
            told = ", ".join(f"{many} {status}" for status, many in group["statuses"].items())
            rows.append((name, which, told or "none", str(group["problems"]), *_share(group)))
    head = ("", "problems", "came to", "count", "correct", "%", "fast tier")
    note = (
        "Correct: passed the final tier, which only the best few kernels of a run are put to. "
        "Rankable: the audit found nothing by which the problem can be faked. Decidable: all but "
        "those that something was found against, or whose values cannot tell right from wrong; a "
        "problem that was not loaded for another reason stays in it."
    )
    return Table(title="Correct", head=head, rows=rows, labels=3, note=note)


def _share(group: Figures) -> tuple[str, str, str]:
    if group["correct"] is None or not is_judged(group):  # on a CPU there is no final tier
        return display.NOT_MEASURED, display.NOT_MEASURED, fast_tier_correct(group)
    return (
        str(group["correct"]),
        display.number(group["correct_percent"], ".1f"),
        fast_tier_correct(group),
    )


def fast_tier_correct(group: Figures) -> str:
    """Return how many problems have a kernel that passed the fast tier and failed no final one."""
    many = int(group["fast_tier_correct"])
    return str(many) if many or is_judged(group) else display.NOT_MEASURED


def speed_table(groups: Figures, which: str) -> Table:
    """Return fast_p, wins and means of one population, over each baseline."""
    found = {name: populations[which] for name, populations in groups.items()}
    rows = [
        row
        for name, group in found.items()
        for row in _speed_rows(name, group["speedup"], is_judged(group))
    ]
    return _speed(f"Speed-up, {which} problems", rows)


def own_table(groups: Figures) -> Table:
    """Return the same with kernels that lean on a vendor library counted as failures."""
    rows, told = [], []
    for name, populations in groups.items():
        group = populations["all"]
        own, anchors = group["without_library_anchors"], group["library_anchors"]
        rows += _speed_rows(name, own["speedup"], is_judged(group))
        told.append(
            f"{name}: {anchors['yes']} lean on a library ({anchors['by_source_alone']} judged by "
            f"the source alone), {own['correct']} of {group['problems']} are correct without one"
        )
    title = "Speed-up, all problems, kernels that lean on a library as failures"
    return _speed(title, rows, note="; ".join(told) + ".")


def _speed(title: str, rows: list[tuple[str, ...]], note: str = "") -> Table:
    first = (
        "Failures count as 1.0x. A win has a lower end of its 95 % interval over 1.02. Unclaimed: "
        "verified, but the ratio is not claimed; it counts as 1.0x at most."
    )
    head = (
        "", "over", "count", "fast_0", "fast_0.8", "fast_1", "fast_1.2", "fast_1.5", "fast_2",
        "over 1.05x", "wins", "geo. mean", "median", "best", "unclaimed", "left out",
    )  # fmt: skip
    return Table(title=title, head=head, rows=rows, labels=2, note=f"{first} {note}".strip())


def _speed_rows(name: str, speedup: Figures, judged: bool) -> list[tuple[str, ...]]:
    rows = []
    for baseline, s in speedup.items():
        shares = [display.number(share) for share in s["fast_p"].values()]
        shares = shares if judged else [display.NOT_MEASURED] * len(shares)
        counts = [str(s["over_1.05"]), str(s["wins"])]
        measured = s["best"] is not None
        means = [s[key] if measured else None for key in ("geometric_mean", "median", "best")]
        rows.append((
            name, BASELINE_NAMES.get(baseline, baseline), str(s["problems"]), *shares,
            *(counts if judged else [display.NOT_MEASURED] * 2), *map(display.ratio, means),
            str(len(s["unclaimed"])), str(len(s["without"])),
        ))  # fmt: skip
    return rows


def spent_table(groups: Figures) -> Table:
    """Return what it took to come to the first correct and to the best kernel."""
    rows = []
    for name, populations in groups.items():
        group = populations["all"]
        for key, what in _REACHED.items():
            if key in group:
                to = group[key]
                cells = [_median(to[axis], write) for axis, (_, write) in _AXES.items()]
                never = str(to["calls"]["never"])
                rows.append((name, what, *cells, str(to["calls"]["known"]), never))
    head = ("", "to the", *(title for title, _ in _AXES.values()), "came there", "never")
    note = "Medians over the problems that came there; for how many it is unknown, in brackets."
    return Table(title="Spent on a problem", head=head, rows=rows, labels=2, note=note)


def _median(to: Figures, write: Callable[[float | None], str]) -> str:
    if to["median"] is None:
        return display.UNKNOWN if to["unknown"] else display.NOT_MEASURED
    return write(to["median"]) + (f" ({to['unknown']} unknown)" if to["unknown"] else "")


def memory_table(groups: Figures) -> Table:
    """Return the peak memory of verified kernels."""
    rows = []
    for name, populations in groups.items():
        peak = populations["all"]["peak_memory_bytes"]
        sizes = (display.memory(peak["median"]), display.memory(peak["most"]))
        rows.append((name, *sizes, str(peak["known"]), str(peak["unknown"])))
    head = ("", "median", "most", "known", "unknown")
    return Table(title="Peak memory of verified kernels", head=head, rows=rows)


def listed_tables(column: Figures, anchors: Mapping[str, str]) -> list[Table]:
    """Return the lists: failed verdicts (those of starting kernels apart), not solved, undecidable.

    Args:
        column: the figures of one column.
        anchors: where each problem stands in the page, by name.
    """

    def link(name: str) -> Cell:
        return Link(name, f"#p-{anchors[name]}") if name in anchors else name

    not_solved = [(link(n["problem"]), n["status"], _why(n["why"])) for n in column["not_solved"]]
    undecidable = [
        (link(n["problem"]), n["status"], _why(n["reason"])) for n in column["undecidable"]
    ]
    short = [(link(name),) for name in column["short_final"]]
    tables = [
        _failures("Failed verdicts by class", column["failures"]),
        _failures("Failed verdicts of starting kernels by class", column["start_failures"]),
        Table(title="Not solved", head=("problem", "came to", "why"), rows=not_solved,
              labels=3, is_long=True),
        Table(title="Undecidable: in no target", head=("problem", "came to", "reason"),
              rows=undecidable, labels=3, is_long=True),
        Table(title="Verified by the short final tier", head=("problem",), rows=short,
              is_long=True),
    ]  # fmt: skip
    return [table for table in tables if table.rows]


def _failures(title: str, failures: Sequence[Figures]) -> Table:
    rows = [
        (f["status"], f["tier"], display.one_line(f["kind"], limit=60),
         display.one_line(f["rule"] or "", limit=60), str(f["attempts"]), str(f["problems"]),
         str(f["unsolved"]))
        for f in failures
    ]  # fmt: skip
    head = ("status", "tier", "kind", "rule", "attempts", "problems", "unsolved")
    return Table(title=title, head=head, rows=rows, labels=4)


def _why(text: str) -> str:
    return display.one_line(text, limit=WHY_CHARACTERS)


def precision_tables(sides: Sequence[Figures]) -> list[Table]:
    """Return the precision policies beside each other, over the same problems."""
    tables = []
    for side in sides:
        rows = []
        for policy, group in side["policies"].items():
            speedup = group["speedup"] or {}
            found = [speedup.get(name, {}) for name in ("eager", "better_of_both", "eager_tf32")]
            means = [s["geometric_mean"] if s.get("best") is not None else None for s in found]
            rows.append(
                (policy, str(group["problems"]), *_share(group), *map(display.ratio, means))
            )
        head = ("policy", "count", "correct", "%", "fast tier", "over eager",
                "over the better of both", "over eager_tf32")  # fmt: skip
        tf32 = side["eager_rounds_convolutions_to_tf32"]
        note = (
            "Eager rounds convolutions to TF32 on "
            f"{tf32['yes']} of these problems, not on {tf32['no']}, unknown on "
            f"{tf32['unknown_or_none']}."
        )
        where = f"{side['generator']}, {side['device']}, level {side['level']}"
        tables.append(Table(title=f"Precision policies ({where})", head=head, rows=rows, note=note))
    return tables
