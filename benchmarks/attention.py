"""Tune and time the attention problems with the built-in generator; write a results file.

    make bench-attention ARGS=--plan            which rows there are, and how long they take
    make bench-attention ARGS='--slice 1'       the first slice of that plan: under 8 minutes
    python -m benchmarks.attention --rows full,causal-64,s16384 --seconds 470

Each row is one `hotloop optimize` in a process of its own with one GPU; the GPUs of the machine
take the rows in turn. Rows are kept in `attention_GPU.partial.json`, rewritten after each. Those of
the same commit are not measured again: the same command goes on where `--slice` or `--seconds` cut
it, and a row that was cut starts again; one that found no kernel in its budget, or did not come to
its final tier, is tried up to three times. A row during which the sources changed is dropped. When
the last row is there, the file becomes `attention_GPU.json`; `--publish` does that with the rows
there are.

`--summarise` reads a results file and writes its summary anew, with the reasons of misses that
`attention_reasons.toml` has by now. Rows of a model are made by `attention_models.py`.
`--device cpu` only tries the path, at small sizes: nothing is timed there, and no results file is
written.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.attention_cases import CASES, MAIN_S, Case, select, without_files
from benchmarks.attention_plan import plan_text, seconds
from benchmarks.attention_run import RunOptions, measure
from benchmarks.attention_session import Benchmark, known_seconds
from benchmarks.attention_table import add_reference, smoke_table, summarise
from benchmarks.attention_targets import load_reasons, target_lines
from benchmarks.gpu_pool import gpu_slug, visible_gpus
from benchmarks.results_file import RESULTS, ROOT, commit
from hotloop.errors import DeviceLost, HotloopError

SMOKE_BUDGET = "45s"


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is missing; return 0 when every row asked for was measured."""
    args = _parse(argv)
    try:
        if args.summarise is not None:
            return summarise_again(args.summarise)
        if args.budget is not None:
            seconds(args.budget)
        cases = select(args.rows)
        skipped = without_files(cases)
        cases = [case for case in cases if case not in skipped]
        if args.reference is not None:
            add_reference([], args.reference)  # a bad file is found before any work
        if args.plan:
            print(plan_text(cases, args.gpus or 1, known_seconds(), skipped, args.budget))
            return 0
        if args.device == "cpu":
            return _smoke([case for case in cases if case.S == MAIN_S], args)
        out = args.out or RESULTS / f"attention_{gpu_slug()}.json"
        return Benchmark(args, visible_gpus(args.gpus), out).run(cases, skipped)
    except (ValueError, OSError, KeyError, DeviceLost, HotloopError) as exc:
        print(f"attention: {type(exc).__name__}: {exc}", file=sys.stderr)
        return 2


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", default="", help="such as full,causal-64,s16384; default: all")
    parser.add_argument("--plan", action="store_true", help="print slices and times; run nothing")
    parser.add_argument("--slice", type=int, help="run this slice of --plan, from 1")
    parser.add_argument("--seconds", type=float, help="wall clock for all of it")
    parser.add_argument("--budget", help="of each row's search; by default by its length")
    parser.add_argument("--gpus", type=int, help="how many; by default all, with --plan 1")
    parser.add_argument("--publish", action="store_true", help="write the results file as it is")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--reference", type=Path, help="times of flex and plain Triton, as JSON")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "bench-attention")
    parser.add_argument("--out", type=Path, help="by default benchmarks/results/attention_GPU.json")
    parser.add_argument(
        "--take", type=Path, action="append", default=[], metavar="FILE",
        help="rows that another machine measured, of the same commit, GPU, driver, torch and "
        "triton; repeatable",
    )  # fmt: skip
    parser.add_argument("--summarise", type=Path, metavar="FILE", help="of a results file, anew")
    return parser.parse_args(argv)


def summarise_again(path: Path) -> int:
    """Write the summary of a results file anew; its rows, commit and date stay."""
    record = json.loads(path.read_text(encoding="utf-8"))
    gpus = record["summary"].get("parallel_runs", 1)
    skipped = without_files(CASES)
    reasons = load_reasons(record["commit"])
    summary = summarise(record["rows"], gpus=gpus, skipped=skipped, reasons=reasons)
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(record | {"summary": summary}, indent=1, sort_keys=True) + "\n")
    os.replace(fresh, path)
    print("\n".join(target_lines(summary["targets"])))
    return 0


def _smoke(cases: Sequence[Case], args: argparse.Namespace) -> int:
    if not cases:
        raise ValueError(f"--device cpu: expected rows at S {MAIN_S}, which small sizes replace")
    end = time.monotonic() + (args.seconds or 600.0)
    options = RunOptions(
        device="cpu", budget=args.budget or SMOKE_BUDGET,
        runs=args.runs.resolve() / "cpu" / commit(), deadline=end, max_candidates=1,
    )  # fmt: skip
    rows = [row for case in cases if (row := measure(case, "", options)) is not None]
    print("without a GPU: kernels are checked, nothing is timed, no results file is written")
    print(smoke_table(rows))
    return 0 if len(rows) == len(cases) and all(r["status"] == "PASSED" for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
