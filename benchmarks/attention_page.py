"""The tables of docs/attention.md, from the results files; the text around them is written by hand.

Nothing is claimed that is not in `benchmarks/results/`. Rows of the built-in generator and of a
model stand in tables of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.attention_cases import LENGTHS
from benchmarks.attention_figure import TITLES, bars
from benchmarks.attention_ratios import (
    FLEX,
    FLEX_APPROX,
    interval_of,
    is_result,
    over_fastest,
    speedup_of,
    with_prepare,
)
from benchmarks.attention_targets import REASONS, describe, load_reasons, ratio_text, targets
from benchmarks.results_file import Row

BEGIN = "<!-- attention tables: written by benchmarks/readme.py -->"
END = "<!-- end of attention tables -->"
NO_RESULTS = "No measured results are published with this version yet."
NO_MODEL_RESULTS = "No results of a model are published with this version yet."
SPREAD_CALLS = (1, 32)
ROW_HEAD = (
    "| row | B | kernel | hotloop ms | over flex [95 %] | over tuned flex | others (x over) |",
    "|---|---:|---|---:|---|---:|---|",
)
SHOWN_APART = FLEX
TARGETS_NOTE = (
    "Met or missed is what the whole 95 % interval says; `within noise` spans the limit. The "
    "interval of several rows is the mean of their lower and of their upper ends. Rows that are "
    "held against our own `full` were measured in processes of their own, perhaps days apart, also "
    "on one GPU: their interval comes from the quartiles of the calls in each, and what differs "
    "between processes is not in it."
)
GRAPHS_NOTE = (
    "Device time / time of a single replay of a graph, both on cold caches, in ms. Our own kernels "
    "were not timed as graphs in this way: they are not in this table, and no ratio is made of it."
)


def tables(
    results: Mapping[str, Any] | None, models: Mapping[str, Any] | None, reasons: Path = REASONS
) -> str:
    """Return the Markdown between the markers."""
    builtin = _builtin(results, reasons)
    return "\n".join([*builtin, "", "### Kernels of a model", "", *_models(models)])


def _builtin(results: Mapping[str, Any] | None, reasons: Path) -> list[str]:
    if results is None:
        return [NO_RESULTS]
    where, rows = results["environment"], results["rows"]
    lines = [
        f"{where['gpu']}, torch {where['torch']}, triton {where['triton']}, final tier, commit "
        f"`{results['commit']}` of {results['date']}, made by `{results['command']}`. "
        "Built-in generator: kernels from human-written templates, tuned by measurement; no model.",
        "",
        "### Targets",
        "",
        *_targets(rows, load_reasons(results["commit"], reasons)),
        "",
        "### The picture",
        "",
        *_picture(rows),
    ]
    for S in LENGTHS:
        chosen = [row for row in rows if row["workload"]["S"] == S]
        if chosen:
            lines += ["", f"### S {S}", "", *ROW_HEAD, *(row_line(row) for row in chosen)]
    lines += ["", "### Work ahead of the calls", "", *_ahead(rows)]
    lines += ["", "### Replayed as CUDA graphs", "", *_replayed(rows)]
    lines += _missing(rows)
    skipped = results["summary"].get("skipped", {})
    return lines + [f"- `{key}` was not run: {why}" for key, why in skipped.items()]


def _picture(rows: Sequence[Row]) -> list[str]:
    """Return how many sizes are behind each bar."""
    found = bars(rows)
    told = ", ".join(f"{TITLES[bar.variant]} {bar.told}" for bar in found)
    lines = [
        f"A pale bar is over fewer than six sizes; a row that failed counts as 1.0. Run: {told}."
    ]
    failed = [key for bar in found for key in bar.failed]
    return lines + ([f"Failed: {', '.join(failed)}."] if failed else [])


def _targets(rows: Sequence[Row], reasons: Mapping[str, Mapping[str, str]]) -> list[str]:
    lines = ["| target | must / stretch | measured [95 %] | |", "|---|---|---:|---|"]
    described = describe(targets(rows), reasons)
    for target in described:
        stretch = "" if target["stretch"] is None else f" / {target['stretch']:g}"
        ratio = ratio_text(target)
        how = f" ({target['how']})" if target["how"] and ratio else ""
        limits = f"{target['must']:g}{stretch}"
        state = {"must": "met", "stretch": "met with the stretch"}.get(
            target["state"], target["state"]
        )
        if target["state"] == "must" and target["stretch"] is None:
            state = "met"
        lines.append(f"| {target['name']}{how} | {limits} | {ratio} | {state} |")
    lines += ["", TARGETS_NOTE]
    for target in described:
        reason = target.get("reason")
        if reason:
            lines += ["", f"**{target['name']}**: {reason['limit']} Evidence: "
                      f"{reason['evidence']} Tried: {reason['tried']}"]  # fmt: skip
    without = [t["name"] for t in described if t["state"] == "missed" and not t.get("reason")]
    if without:
        lines += ["", f"Missed, and no reason is given yet: {'; '.join(without)}."]
    return lines


def row_line(row: Mapping[str, Any]) -> str:
    """Return one line of a table of rows; a row without a result keeps its place."""
    name, batch = row["row"], row["workload"]["B"]
    if not is_result(row):
        return f"| {name} | {batch} | | | {row['status']} | | |"
    performance = row["performance"]
    tuned = speedup_of(row, "flex_max_autotune")
    others = {
        other: ratio for other, ratio in performance["speedup"].items() if other not in SHOWN_APART
    }
    told = ", ".join(
        [*(f"{other} {others[other]:.2f}" for other in sorted(others)), *_slow_eager(row)]
    )
    kernel = " ".join(part for part in (row.get("family"), row.get("mode")) if part)
    cells = (name, batch, kernel, f"{performance['latency_ms']:.3f}", _over(row),
             "" if tuned is None else f"{tuned:.2f}", told)  # fmt: skip
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _slow_eager(row: Mapping[str, Any]) -> list[str]:
    """Return the ratio over eager by its time at set-up, where it was too slow to interleave."""
    eager_ms = (row.get("setup_baselines_ms") or {}).get("eager")
    believed = row["performance"]["speedup"]
    if eager_ms is None or not believed or "eager" in believed:
        return []
    return [f"eager {eager_ms / row['performance']['latency_ms']:.0f} (at set-up)"]


def _over(row: Mapping[str, Any]) -> str:
    ratio, interval = speedup_of(row), interval_of(row)
    if ratio is None:
        return ""
    return f"{ratio:.2f} [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else f"{ratio:.2f}"


def _ahead(rows: Sequence[Row]) -> list[str]:
    """Return prepare() beside create_block_mask: both sides' work ahead spread over the calls."""
    lines = [
        "`prepare()` beside `create_block_mask`, in ms of wall clock; the ratio over the faster "
        "of `flex` and `flex_max_autotune` when both are spread over 1 and over 32 calls:",
        "",
        "| row | prepare ms | block mask ms | over | calls alone | over 1 call | over 32 |",
        "|---|---:|---:|---|---:|---:|---:|",
    ]
    for row in rows:
        ahead = row["performance"].get("baseline_prepare_ms") if is_result(row) else None
        over = over_fastest(row, FLEX)
        if over is None or not ahead or over.baseline not in ahead:
            continue
        ratios = [over.ratio, *(with_prepare(row, over.baseline, calls) for calls in SPREAD_CALLS)]
        told = " | ".join("" if ratio is None else f"{ratio:.2f}" for ratio in ratios)
        mine, theirs = row["performance"]["prepare_ms"] or 0, ahead[over.baseline]
        lines.append(f"| {row['row']} | {mine:.3f} | {theirs:.3f} | {over.baseline} | {told} |")
    return lines


def _replayed(rows: Sequence[Row]) -> list[str]:
    """Return the baselines' device times beside their times as graphs; ours were not taken."""
    lines = []
    for row in rows:
        checks = row["performance"].get("timing_checks", {}) if is_result(row) else {}
        graphs = checks.get("graph_replayed_ms")
        if not graphs:
            continue
        baselines = row["performance"]["baselines"]
        told = ", ".join(
            f"{name} {baselines[name]:.3f} / {ms:.3f}"
            for name, ms in graphs.items()
            if ms is not None and name in baselines
        )
        lines.append(f"| {row['row']} | {told} |")
    if not lines:
        return ["Not in this file: it was measured before graphs were."]
    return [GRAPHS_NOTE, "", "| row | baselines |", "|---|---|", *lines]


def _missing(rows: Sequence[Row]) -> list[str]:
    """Return which baselines were not there, and why, once each."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for name, why in (row.get("missing_baselines") or {}).items():
            reasons.setdefault((name, why), []).append(row["row"])
    if not reasons:
        return []
    lines = ["", "### Baselines that are missing", ""]
    for (name, why), keys in reasons.items():
        where = "all rows" if len(keys) == len(rows) else ", ".join(keys)
        lines.append(f"- `{name}` ({where}): {why}")
    return lines


def _models(models: Mapping[str, Any] | None) -> list[str]:
    if models is None:
        return [NO_MODEL_RESULTS]
    where = models["environment"]
    calls = [row["calls"] for row in models["rows"]]
    lines = [
        f"{where['gpu']}, D 128, S 4096, final tier, commit `{models['commit']}` of "
        f"{models['date']}; {min(calls)} to {max(calls)} rounds each. `started` runs begin with "
        "the template's fastest kernel in their language, `blank` ones with nothing. `over its "
        "start` is the final ratio of the best kernel over that of the start, each over the same "
        "FlexAttention timed beside it; under 1, the loop ended with a slower kernel. In a mean a "
        "run that failed counts as 1.0.",
        "",
        "| problem | language | began | model | calls | status | over flex [95 %] | over tuned "
        "flex | over its start [95 %] |",
        "|---|---|---|---|---:|---|---|---:|---|",
        *(model_line(row) for row in models["rows"]),
        "",
    ]
    for language, group in models["summary"]["languages"].items():
        lines.append(f"- {language}: {_group(group)}")
    return lines


def model_line(row: Mapping[str, Any]) -> str:
    """Return one line of the models' table."""
    tuned = speedup_of(row, "flex_max_autotune")
    gain = row["loop_over_template"]
    unknown = "not measured" if row["arm"] == "started" else ""
    over_start = unknown if gain is None else f"{gain:.2f}{_ends(row)}"
    cells = (
        row["title"], row["language"], row["arm"], row["model"], row["calls"], row["status"],
        _over(row), "" if tuned is None else f"{tuned:.2f}", over_start,
    )  # fmt: skip
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _ends(of: Mapping[str, Any]) -> str:
    ends = of.get("loop_over_template_ci")
    return f" [{ends[0]:.2f}, {ends[1]:.2f}]" if ends else ""


def _group(group: Mapping[str, Any]) -> str:
    told = []
    for arm in ("blank", "started"):
        of_arm = group[arm]
        mean, rows, compared = (
            of_arm[k] for k in ("geomean_over_fastest_flex", "rows", "compared")
        )
        ratio = "no ratio" if mean is None else f"{mean:.2f} over the faster flex"
        if mean is not None and of_arm["passed"] < compared:
            ratio += ", failures as 1.0"
        unmeasured = f", {rows - compared} not measured" if compared < rows else ""
        told.append(f"{arm}: {of_arm['passed']} of {rows} passed, {ratio}{unmeasured}")
    started = group["started"]
    adds, loop = group["template_adds"], started["loop_over_template"]
    if loop is not None:
        told.append(
            f"the loop makes the template's kernels {loop:.2f}{_ends(started)} times as fast "
            f"({started['loop_measured']} of {started['rows']} runs measured)"
        )
    elif started["rows"]:
        told.append("what the loop adds to the template's kernels is not measured")
    if adds is not None:
        told.append(
            f"beginning with the template makes kernels {adds:.2f} times as fast, as the mean over "
            f"the {group['pairs']} problems that both were measured on"
        )
    return "; ".join(told)


def softcap_note(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return what soft-cap is over FlexAttention with the same tanh; empty without it."""
    found = {row["row"]: over_fastest(row, FLEX_APPROX) for row in rows}
    ratios = [f"{over.ratio:.2f} ({key})" for key, over in found.items() if over is not None]
    if not ratios:
        return ""
    return f" Over FlexAttention with the same approximate tanh: {', '.join(ratios)}."
