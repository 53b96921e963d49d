"""Time the verifier itself: how long a problem takes to load and a kernel to be judged.

    python benchmarks/verify.py [--problem examples/attention/relative.py] [--count 8]

Needs an NVIDIA GPU. Every verification gets a kernel that was not compiled before (another schedule
of the built-in generator), one after the other, without building ahead.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attention import gpu_slug
from results_file import RESULTS, ROOT, write_results

from hotloop import registry
from hotloop.core.verdict import Tier
from hotloop.problems import load_problem_spec
from hotloop.verify import LocalVerifier, find_device

PROBLEM = ROOT / "examples" / "attention" / "relative.py"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and write; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", default=str(PROBLEM))
    parser.add_argument("--data", default=None, help="the KernelBench data set")
    parser.add_argument("--count", type=int, default=8, help="kernels at the fast tier")
    parser.add_argument("--out", type=Path, default=None)
    args = parser.parse_args(argv)
    find_device("cuda")
    rows, environment = measure(args.problem, data=args.data, count=args.count)
    write_results(
        args.out or RESULTS / f"verify_{gpu_slug()}.json",
        command="make bench-verify",
        environment=environment,
        rows=rows,
        summary=summarise(rows),
    )
    for name, value in summarise(rows).items():
        print(f"{name}: {value:.2f}")
    return 0


def measure(
    name: str, *, data: str | None, count: int
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Load the problem, judge `count` kernels at the fast tier and the last at the final one."""
    problem = load_problem_spec(name, device="cuda", data=data)
    generator = registry.load("hotloop.generators", "builtin")()
    verifier = LocalVerifier("cuda")
    try:
        info, load_s = timed(lambda: verifier.load(problem))
        rows = [{"problem": problem.name, "what": "load", "wall_s": load_s}]
        strategy = registry.load("hotloop.strategies", "random")(generator.space(info), 0)
        kernels = [generator.generate(info, proposal) for proposal in strategy.ask(count)]
        for tier, kernel in [*((Tier.FAST, k) for k in kernels), (Tier.FINAL, kernels[-1])]:
            verdict, wall_s = timed(lambda k=kernel, t=tier: verifier.verify(k, t))
            rows.append(
                {
                    "problem": problem.name,
                    "what": tier.value,
                    "status": verdict.status.value,
                    "wall_s": wall_s,
                    "stage_s": dict(verdict.stage_s),
                }
            )
        return rows, dict(info.environment)
    finally:
        verifier.close()


def timed(call: Any) -> tuple[Any, float]:
    """Return the call's result and its wall seconds."""
    start = time.perf_counter()
    value = call()
    return value, time.perf_counter() - start


def summarise(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return the median wall seconds of each kind of work, of kernels that passed."""
    kinds = {row["what"] for row in rows}
    return {
        f"{kind}_median_s": statistics.median(
            row["wall_s"]
            for row in rows
            if row["what"] == kind and row.get("status", "PASSED") == "PASSED"
        )
        for kind in sorted(kinds)
        if any(r["what"] == kind and r.get("status", "PASSED") == "PASSED" for r in rows)
    }


if __name__ == "__main__":
    sys.exit(main())
