"""Write the README's tables and the tables and pictures of two pages from the results files.

The pages are docs/attention.md and docs/kernelbench.md.

    python -m benchmarks.readme            write
    python -m benchmarks.readme --check    exit 1 when one of them is not what it would write

They claim no figure that is not in `benchmarks/results/`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from benchmarks import (
    attention_page,
    kernelbench_figure,
    kernelbench_page,
    readme_kernelbench,
    readme_pilot,
)
from benchmarks.attention_cases import MAIN_S
from benchmarks.attention_figure import picture
from benchmarks.readme_kernelbench import kernelbench_section
from benchmarks.readme_pilot import pilot_section

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "attention_h200.json"
MODELS = ROOT / "benchmarks" / "results" / "attention_models_h200.json"
PILOT = ROOT / "benchmarks" / "results" / "model_pilot_h200.json"
THROUGHPUT = ROOT / "benchmarks" / "results" / "verify_throughput_h200.json"
KERNELBENCH = ROOT / "benchmarks" / "results" / "kernelbench_h200.json"
README = ROOT / "README.md"
PICTURE = ROOT / "docs" / "attention_h200.svg"
PAGE = ROOT / "docs" / "attention.md"
KERNELBENCH_PICTURE = ROOT / "docs" / "kernelbench_h200.svg"
KERNELBENCH_PAGE = ROOT / "docs" / "kernelbench.md"
BEGIN = "<!-- attention results: written by benchmarks/readme.py -->"
END = "<!-- end of attention results -->"
NO_RESULTS = "No measured results are published with this version yet."
BASELINE = "flex"
WIN_OVER = 1.02
"""A row counts as a win when the lower end of its interval is over this."""

Row = dict[str, Any]


def load_results(path: Path = RESULTS) -> dict[str, Any] | None:
    """Return the results file; None when there is none yet."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def section(results: dict[str, Any] | None) -> str:
    """Return the Markdown that stands between the markers."""
    if results is None:
        return NO_RESULTS
    where = results["environment"]
    rows = shown_rows(results["rows"])
    lines = [
        f"![speed-up over compiled FlexAttention]({PICTURE.relative_to(ROOT)})",
        "",
        "| problem | B, H, S, D, dtype | hotloop ms | flex ms | over flex [95 %] "
        "| fastest other | over it |",
        "|---|---|---:|---:|---:|---|---:|",
        *(table_row(row) for row in rows),
        "",
        f"Built-in generator (human-written templates and tuning, no model), final tier, "
        f"{where['gpu']}, torch {where['torch']}, triton {where['triton']}, {results['date']}. "
        f"{count_wins(rows)} Over 1 means that hotloop is faster. `flex` is "
        "`torch.compile(flex_attention)`; kernels that did not pass are listed, not dropped. "
        "Ratios are within one session; absolute times differ by several per cent between GPUs "
        f"of one kind. Source: `{RESULTS.relative_to(ROOT)}`, made by `{results['command']}`. "
        "[All rows, targets met and missed, and what the picture is of]"
        f"({PAGE.relative_to(ROOT)}).",
        *disclosures(rows),
        *throughput(load_results(THROUGHPUT)),
    ]
    return "\n".join(lines)


def shown_rows(rows: list[Row]) -> list[Row]:
    """Return the rows of the README: each variant once a head size, at the main length."""
    return [
        row
        for row in rows
        if row["workload"]["S"] == MAIN_S
        and row.get("packing") is None
        and row.get("timed_profile") is None
    ]


def throughput(results: dict[str, Any] | None) -> list[str]:
    """Return what verifying costs, as a paragraph; nothing without results."""
    if results is None:
        return []
    summary = results["summary"]
    gpu, wall, early = summary["gpu_s"], summary["wall_s"], summary["early_failure_s"]
    return [
        "",
        f"Judging a source that it has not seen takes a warm verifier {gpu['p50']:.1f} s of GPU "
        f"time (median; 90 % under {gpu['p90']:.1f} s) and {wall['p50']:.1f} s of wall clock, over "
        f"{gpu['n']} verdicts on {summary['problems']} problems; a kernel that does not compile "
        f"costs {early['compile']['p50']:.1f} s. Source: `{THROUGHPUT.relative_to(ROOT)}`, made by "
        f"`{results['command']}` at commit {results['commit'][:7]} of {results['date']}; what the "
        "verifier has looked at since is not in it.",
    ]


def disclosures(rows: list[Row]) -> list[str]:
    """Return what a reader must know about single rows, as paragraphs."""
    lines: list[str] = []
    approximate = [row for row in rows if (row.get("schedule") or {}).get("tanh") == "approx"]
    if approximate:
        names = ", ".join(sorted({short_name(row) for row in approximate}))
        lines += [
            "",
            f"{names}: the kernel uses the hardware's approximate tanh (`tanh.approx.f32`), "
            "`flex` the exact one; its error passes the same gate as every other row's, and part "
            f"of that speed-up is this choice.{attention_page.softcap_note(rows)}",
        ]
    mapped = [r for r in rows if "row_order" in (r.get("schedule") or {}) and r["performance"]]
    if mapped:
        names = ", ".join(sorted({short_name(row) for row in mapped}))
        longest = max(row["performance"]["prepare_ms"] for row in mapped)
        lines += [
            "",
            f"{names}: which tiles a mask leaves is found ahead, in `prepare()` (at most "
            f"{longest:.2f} ms of wall clock here); it is not in the time, as "
            "`create_block_mask` is not in that of `flex`.",
        ]
    return lines


def short_name(row: Row) -> str:
    """Return the problem's name without its folder."""
    return str(row["problem"]).removeprefix("attention/")


def count_wins(rows: list[Row]) -> str:
    """Return how many rows are wins over the baseline, and how many were tried."""
    compared = [row for row in rows if ratio_of(row) is not None]
    wins = sum(1 for row in compared if interval_of(row)[0] > WIN_OVER)
    return (
        f"{wins} of {len(compared)} problems are wins over {BASELINE} (lower end of the interval "
        f"over {WIN_OVER})."
    )


def table_row(row: Row) -> str:
    """Return one line of the table."""
    workload = row["workload"]
    sizes = ", ".join(str(workload[k]) for k in ("B", "H", "S", "D", "dtype"))
    name = short_name(row)
    performance = row.get("performance")
    if row["status"] != "PASSED" or not performance:
        return f"| {name} | {sizes} | {row['status']} | | | | |"
    baselines = performance["baselines"]
    others = {k: v for k, v in baselines.items() if k != BASELINE and v is not None}
    flex = f"{baselines[BASELINE]:.3f}" if BASELINE in baselines else ""
    other = min(others, key=lambda k: others[k]) if others else None
    ratio = f"{others[other] / performance['latency_ms']:.2f}" if other else ""
    cells = (name, sizes, f"{performance['latency_ms']:.3f}", flex, over(row), other or "", ratio)
    return "| " + " | ".join(cells) + " |"


def ratio_of(row: Row) -> float | None:
    """Return the speed-up over the baseline; None where there is none."""
    performance = row.get("performance") or {}
    ratio: float | None = performance.get("speedup", {}).get(BASELINE)
    return ratio


def interval_of(row: Row) -> tuple[float, float]:
    """Return the 95 % interval of `ratio_of`; without one, it is no win."""
    low, high = row["performance"].get("speedup_ci", {}).get(BASELINE, (0.0, 0.0))
    return low, high


def over(row: Row) -> str:
    """Return the ratio with its interval."""
    ratio = ratio_of(row)
    if ratio is None:
        return ""
    low, high = interval_of(row)
    return f"{ratio:.2f} [{low:.2f}, {high:.2f}]" if high else f"{ratio:.2f}"


def with_section(readme: str, text: str, begin: str = BEGIN, end: str = END) -> str:
    """Return the README with `text` between the markers.

    Raises:
        ValueError: the markers are not there exactly once.
    """
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if len(pattern.findall(readme)) != 1:
        raise ValueError(f"expected {begin} ... {end} once in the README")
    return pattern.sub(lambda _: f"{begin}\n{text}\n{end}", readme)


def with_sections(readme: str) -> str:
    """Return the README with its generated parts as the results files give them."""
    pilot = pilot_section(load_results(PILOT), PILOT.relative_to(ROOT))
    kernelbench = kernelbench_section(load_results(KERNELBENCH), KERNELBENCH.relative_to(ROOT))
    text = with_section(readme, section(load_results()))
    text = with_section(text, kernelbench, readme_kernelbench.BEGIN, readme_kernelbench.END)
    return with_section(text, pilot, readme_pilot.BEGIN, readme_pilot.END)


def with_tables(page: str) -> str:
    """Return docs/attention.md with its tables as the results files give them."""
    text = attention_page.tables(load_results(), load_results(MODELS))
    return with_section(page, text, attention_page.BEGIN, attention_page.END)


def with_kernelbench_tables(page: str) -> str:
    """Return docs/kernelbench.md with its tables as the results file gives them."""
    text = kernelbench_page.tables(load_results(KERNELBENCH), KERNELBENCH.relative_to(ROOT))
    return with_section(page, text, kernelbench_page.BEGIN, kernelbench_page.END)


def written() -> dict[Path, str]:
    """Return what each generated file has to hold; a picture without results is left out."""
    attention, kernelbench = load_results(), load_results(KERNELBENCH)
    drawn = {
        PICTURE: None if attention is None else picture(attention),
        KERNELBENCH_PICTURE: (
            None if kernelbench is None else kernelbench_figure.picture(kernelbench)
        ),
    }
    return {
        README: with_sections(README.read_text(encoding="utf-8")),
        PAGE: with_tables(PAGE.read_text(encoding="utf-8")),
        KERNELBENCH_PAGE: with_kernelbench_tables(KERNELBENCH_PAGE.read_text(encoding="utf-8")),
    } | {path: text for path, text in drawn.items() if text is not None}


def main() -> int:
    """Write or check; return the exit code."""
    texts = written()
    if "--check" in sys.argv[1:]:
        stale = any(
            not path.exists() or path.read_text(encoding="utf-8") != text
            for path, text in texts.items()
        )
        print("the README is not up to date: make readme" if stale else "the README is up to date")
        return 1 if stale else 0
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
