"""The tables of docs/attention.md, from the results files; the text around them is written by hand.

Nothing is claimed that is not in `benchmarks/results/`. Rows of the built-in generator and of a
model stand in tables of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.attention_cases import LENGTHS
from benchmarks.attention_ratios import (
    FLEX,
    FLEX_APPROX,
    interval_of,
    is_result,
    over_fastest,
    speedup_of,
    with_prepare,
)
from benchmarks.attention_targets import describe, load_reasons, targets
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


def tables(results: Mapping[str, Any] | None, models: Mapping[str, Any] | None) -> str:
    """Return the Markdown between the markers."""
    return "\n".join([*_builtin(results), "", "### Kernels of a model", "", *_models(models)])


def _builtin(results: Mapping[str, Any] | None) -> list[str]:
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
        *_targets(rows),
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


def _targets(rows: Sequence[Row]) -> list[str]:
    lines = ["| target | must / stretch | measured | |", "|---|---|---:|---|"]
    described = describe(targets(rows), load_reasons())
    for target in described:
        stretch = "" if target["stretch"] is None else f" / {target['stretch']:g}"
        ratio = "" if target["ratio"] is None else f"{target['ratio']:.3f}"
        how = f" ({target['how']})" if target["how"] and ratio else ""
        limits = f"{target['must']:g}{stretch}"
        state = {"must": "met", "stretch": "met with the stretch"}.get(
            target["state"], target["state"]
        )
        if target["state"] == "must" and target["stretch"] is None:
            state = "met"
        lines.append(f"| {target['name']}{how} | {limits} | {ratio} | {state} |")
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
    """Return device times beside times of graphs; ours is a graph of a batch by the wall clock."""
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
        mine, wall = row["performance"]["latency_ms"], row["performance"]["wall_check_ms"]
        batch = "" if wall is None else f"{wall:.3f}"
        lines.append(f"| {row['row']} | {mine:.3f} / {batch} | {told} |")
    if not lines:
        return ["Not in this file: it was measured before graphs were."]
    return [
        "Device time / time as a graph, in ms. Ours as a graph is a batch of calls by the judge's "
        "wall clock, on warm caches; the baselines' are single replays on cold ones.",
        "",
        "| row | hotloop | baselines |",
        "|---|---|---|",
        *lines,
    ]


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
        "the template's fastest kernel in their language, `blank` ones with nothing.",
        "",
        "| problem | language | began | model | calls | status | over flex [95 %] | over tuned "
        "flex | over its start (fast tier) |",
        "|---|---|---|---|---:|---|---|---:|---:|",
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
    cells = (
        row["title"], row["language"], row["arm"], row["model"], row["calls"], row["status"],
        _over(row), "" if tuned is None else f"{tuned:.2f}", "" if gain is None else f"{gain:.2f}",
    )  # fmt: skip
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _group(group: Mapping[str, Any]) -> str:
    told = []
    for arm in ("blank", "started"):
        of_arm = group[arm]
        mean = of_arm["geomean_over_fastest_flex"]
        ratio = "no ratio" if mean is None else f"{mean:.2f} over the faster flex"
        told.append(f"{arm}: {of_arm['passed']} of {of_arm['rows']} passed, {ratio}")
    adds, loop = group["template_adds"], group["started"]["loop_over_template"]
    if loop is not None:
        told.append(f"the loop makes the template's kernels {loop:.2f} times as fast")
    if adds is not None:
        told.append(f"beginning with the template makes kernels {adds:.2f} times as fast")
    return "; ".join(told)


def softcap_note(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return what soft-cap is over FlexAttention with the same tanh; empty without it."""
    found = {row["row"]: over_fastest(row, FLEX_APPROX) for row in rows}
    ratios = [f"{over.ratio:.2f} ({key})" for key, over in found.items() if over is not None]
    if not ratios:
        return ""
    return f" Over FlexAttention with the same approximate tanh: {', '.join(ratios)}."
