"""Tune and time the attention problems with the built-in generator; write a results file.

    python benchmarks/attention.py [--budget 60s] [--only causal,relative] [--sizes S=4096,D=128]

Needs an NVIDIA GPU. Each problem is a run of its own under `runs/bench-attention`, so the same
command goes on where it was stopped; the results file is rewritten after each problem.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from results_file import RESULTS, ROOT, write_results

import hotloop
from hotloop.core.record import to_json
from hotloop.engine import RunResult
from hotloop.problems import describe_sizes, parse_settings
from hotloop.verify.devices import find_device, gpu_names

PROBLEMS = ROOT / "examples" / "attention"
SIZES = ("S=4096,D=128", "S=4096,D=64", "S=16384,D=128")
"""Sequence lengths and head sizes that each problem is tuned at; the rest is the file's own."""
BASELINE = "flex"


def main(argv: Sequence[str] | None = None) -> int:
    """Run every problem at every size; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", default="120s", help="for each problem and size")
    parser.add_argument("--only", default="", help="names of problems, with commas")
    parser.add_argument("--sizes", action="append", help="--set of one size; may be repeated")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "bench-attention")
    parser.add_argument("--out", type=Path, default=None)
    args = parser.parse_args(argv)
    find_device("cuda")
    wanted = set(filter(None, args.only.split(",")))
    files = [p for p in sorted(PROBLEMS.glob("*.py")) if not wanted or p.stem in wanted]
    rows: list[dict[str, Any]] = []
    environment: dict[str, Any] = {}
    for sizes in args.sizes or SIZES:
        for path in files:
            row, found = measure(path, sizes, budget=args.budget, runs=args.runs)
            rows.append(row)
            environment = found or environment
            write_results(
                args.out or RESULTS / f"attention_{gpu_slug()}.json",
                command="make bench-attention",
                environment=environment,
                rows=rows,
                summary=summarise(rows),
            )
            print(f"{path.stem} {sizes}: {row['status']} {row.get('headline', '')}", flush=True)
    return 0


def measure(
    path: Path, sizes: str, *, budget: str, runs: Path
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Tune one problem at one size; return its row and the environment of its judge."""
    settings = parse_settings(sizes)
    folder = runs / f"{path.stem}-{sizes.replace('=', '').replace(',', '-')}"
    result = hotloop.optimize(path, budget=budget, device="cuda", settings=settings, out=folder)
    with hotloop.load_run(folder) as reader:
        problem = reader.problem()
        info = reader.notes("setup")[-1]["info"]
    attention = info["attention"]
    workload = {k: attention[k] for k in ("B", "H", "Hkv", "S", "Skv", "D", "dtype")}
    row = {
        "problem": problem.name,
        "workload": workload,
        "sizes": describe_sizes(problem),
        "generator": "builtin",
        "missing_baselines": info["missing_baselines"],
        "setup_s": result.setup_s,
        "search_s": result.spent_s,
        "attempts": len(result.attempts),
        **verdict_fields(result),
    }
    return row, info["environment"]


def verdict_fields(result: RunResult) -> dict[str, Any]:
    """Return what the final verdict says; without one, why there is none."""
    verdict = result.final
    if verdict is None:
        return {"status": "NO_FINAL", "tier": "fast", "performance": None}
    fields = to_json(verdict)
    ratio = (fields["performance"] or {}).get("speedup", {}).get(BASELINE)
    kept = ("status", "tier", "mode", "deterministic", "correctness", "performance", "resources")
    headline = f"{ratio:.2f}x over {BASELINE}" if ratio else ""
    point = next(a.point for a in result.attempts if a.id == result.best_attempt_id)
    return {**{k: fields[k] for k in kept}, "headline": headline, "point": dict(point)}


def summarise(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return counts and the geometric mean of the speed-up over the baseline."""
    passed = [r for r in rows if r["status"] == "PASSED"]
    ratios = [r["performance"]["speedup"].get(BASELINE) for r in passed]
    known = [x for x in ratios if x]
    mean = math.exp(sum(map(math.log, known)) / len(known)) if known else None
    return {"problems": len(rows), "passed": len(passed), f"geomean_speedup_{BASELINE}": mean}


def gpu_slug() -> str:
    """Return `h200` for `NVIDIA H200`."""
    return gpu_names()[0].lower().replace("nvidia", "").strip().replace(" ", "-")


if __name__ == "__main__":
    sys.exit(main())
