"""Write the README's table and picture from the results files.

    python -m benchmarks.readme            write
    python -m benchmarks.readme --check    exit 1 when the README is not what it would write

The README claims no figure that is not in `benchmarks/results/`.
"""

from __future__ import annotations

import html
import json
import re
import sys
from pathlib import Path
from typing import Any

from benchmarks import readme_pilot
from benchmarks.readme_pilot import pilot_section

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "attention_h200.json"
PILOT = ROOT / "benchmarks" / "results" / "model_pilot_h200.json"
THROUGHPUT = ROOT / "benchmarks" / "results" / "verify_throughput_h200.json"
README = ROOT / "README.md"
PICTURE = ROOT / "docs" / "attention_h200.svg"
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
    lines = [
        f"![speed-up over compiled FlexAttention]({PICTURE.relative_to(ROOT)})",
        "",
        "| problem | B, H, S, D, dtype | hotloop ms | flex ms | over flex [95 %] "
        "| fastest other | over it |",
        "|---|---|---:|---:|---:|---|---:|",
        *(table_row(row) for row in results["rows"]),
        "",
        f"Built-in generator (human-written templates and tuning, no model), final tier, "
        f"{where['gpu']}, torch {where['torch']}, triton {where['triton']}, {results['date']}. "
        f"{count_wins(results['rows'])} Over 1 means that hotloop is faster. `flex` is "
        "`torch.compile(flex_attention)`; kernels that did not pass are listed, not dropped. "
        "Ratios are within one session; absolute times differ by several per cent between GPUs "
        f"of one kind. Source: `{RESULTS.relative_to(ROOT)}`, made by `{results['command']}`.",
        *disclosures(results["rows"]),
        *throughput(load_results(THROUGHPUT)),
    ]
    return "\n".join(lines)


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
            "of that speed-up is this choice.",
        ]
    mapped = [row for row in rows if "row_order" in (row.get("schedule") or {})]
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
    return performance.get("speedup", {}).get(BASELINE)


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


def picture(results: dict[str, Any]) -> str:
    """Return a bar chart of the speed-ups as SVG: one bar a row, a line at 1, its interval."""
    rows = [row for row in results["rows"] if ratio_of(row) is not None]
    label, width, bar, gap = 260, 420, 16, 8
    top, bottom = 34, 30
    longest = max([*(max(interval_of(r)[1], ratio_of(r) or 0) for r in rows), 1.2])
    height = top + len(rows) * (bar + gap) + bottom
    one = label + width / longest
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {label + width + 70} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{label + width + 70}" height="{height}" fill="#fff"/>',
        f'<text x="8" y="20" font-size="14">Speed-up over compiled FlexAttention, '
        f"{html.escape(str(results['environment']['gpu']))}</text>",
    ]
    for index, row in enumerate(rows):
        parts += _bar(row, top + index * (bar + gap), label, width / longest, bar)
    end = height - bottom + 6
    parts.append(f'<line x1="{one:.1f}" y1="{top - 4}" x2="{one:.1f}" y2="{end}" stroke="#333"/>')
    parts.append(f'<text x="{one:.1f}" y="{end + 14}" text-anchor="middle">1x (flex)</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _bar(row: Row, y: float, left: float, scale: float, thick: float) -> list[str]:
    ratio = ratio_of(row) or 0.0
    low, high = interval_of(row)
    workload = row["workload"]
    name = f"{row['problem'].removeprefix('attention/')} S{workload['S']} D{workload['D']}"
    middle = y + thick / 2
    colour = "#2a7f62" if low > WIN_OVER else "#9aa5ab"
    parts = [
        f'<text x="{left - 8}" y="{middle + 4:.1f}" text-anchor="end">{html.escape(name)}</text>',
        f'<rect x="{left}" y="{y}" width="{ratio * scale:.1f}" height="{thick}" fill="{colour}"/>',
        f'<text x="{left + max(ratio, high) * scale + 6:.1f}" y="{middle + 4:.1f}">'
        f"{ratio:.2f}</text>",
    ]
    if high:
        parts.append(
            f'<line x1="{left + low * scale:.1f}" y1="{middle}" x2="{left + high * scale:.1f}" '
            f'y2="{middle}" stroke="#111" stroke-width="2"/>'
        )
    return parts


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
    """Return the README with both generated parts as the results files give them."""
    pilot = pilot_section(load_results(PILOT), PILOT.relative_to(ROOT))
    attention = with_section(readme, section(load_results()))
    return with_section(attention, pilot, readme_pilot.BEGIN, readme_pilot.END)


def main() -> int:
    """Write or check; return the exit code."""
    results = load_results()
    old = README.read_text(encoding="utf-8")
    new = with_sections(old)
    drawn = picture(results) if results is not None else None
    if "--check" in sys.argv[1:]:
        stale = old != new or (drawn is not None and PICTURE.read_text("utf-8") != drawn)
        print("the README is not up to date: make readme" if stale else "the README is up to date")
        return 1 if stale else 0
    README.write_text(new, encoding="utf-8")
    if drawn is not None:
        PICTURE.write_text(drawn, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
