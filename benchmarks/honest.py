"""Count how often the verifier refuses a kernel that is right: the rate of false refusals.

    make bench-honest                                   all kernels, all GPUs
    python -m benchmarks.honest --seconds 280           what fits into 280 s
    python -m benchmarks.honest --only atomics,split_k  families, problems, origins or kernels
    python -m benchmarks.honest --device cpu --only own   small sizes, interpreter, fast tier

A job is one problem in one round: it is loaded, which draws new secret seeds, then each of its
kernels runs at both tiers. Where judges share a GPU, the rows say so: their clocks are disturbed,
which must not refuse a kernel either. The first round comes first for all problems, so a
benchmark that was cut has seen every kernel before any a second time. Rows that the results file
holds of the same commit are kept: it goes on with the same command.

Without a GPU nothing is timed, there is no final tier, and only `--out` writes a file.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.gpu_pool import gpu_slug, run_jobs, seats, visible_gpus
from benchmarks.honest_catalogue import catalogue, chosen
from benchmarks.honest_judge import HonestJudge
from benchmarks.honest_plan import TIERS, Job, fresh, keys_of, plan, runs_of
from benchmarks.honest_summary import is_refused, summarise, table, told
from benchmarks.results_file import RESULTS, ROOT, Row, commit, rows_of, write_results
from hotloop.core.verdict import Tier
from hotloop.errors import DeviceLost

ROUNDS = 2
"""Loads of each problem; each gives new seeds to both tiers."""


def main(argv: Sequence[str] | None = None) -> int:
    """Judge what is missing; return 0 when all is judged and nothing was refused."""
    args = _parse(argv)
    try:
        kernels = chosen(catalogue(), args.only)
        gpus = visible_gpus(args.gpus) if args.device == "cuda" else [""]
    except (DeviceLost, ValueError) as exc:
        print(f"honest: {exc}", file=sys.stderr)
        return 2
    if args.list:
        for kernel in kernels:
            print(f"{kernel.name:44} {kernel.problem:52} {' '.join(kernel.families)}")
        return 0
    path = args.out
    if path is None and args.device == "cuda":
        path = RESULTS / f"honest_{gpu_slug()}.json"
    tiers = TIERS if args.tier is None else (Tier(args.tier),)
    jobs = plan(kernels, args.device, args.rounds, tiers)
    benchmark = Benchmark(args.device, path, args.logs, options=_options(args))
    rows = benchmark.run(jobs, seats(gpus, args.judges), seconds=args.seconds)
    print(table(rows))
    wanted = [key for job in jobs for key in keys_of(job)]
    judged = {row["key"] for row in rows if row["error"] is None}
    missing = [key for key in wanted if key not in judged]
    if missing:
        print(f"honest: {len(missing)} runs without a result, as {missing[0]}; run again")
    return 1 if missing or any(is_refused(row) for row in rows if not row["by_design"]) else 0


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="names or families, with commas; else all")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="loads of each problem")
    parser.add_argument("--seconds", type=float, default=None, help="wall clock for all of it")
    parser.add_argument("--gpus", type=int, default=None, help="how many; by default all")
    parser.add_argument("--judges", type=int, help="in all; by default one a GPU or CPU")
    parser.add_argument("--tier", choices=[t.value for t in TIERS], help="by default both")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--logs", type=Path, default=ROOT / "runs" / "bench-honest")
    parser.add_argument("--out", type=Path, help="by default benchmarks/results/honest_GPU.json")
    parser.add_argument("--list", action="store_true", help="print the catalogue, judge nothing")
    return parser.parse_args(argv)


def _options(args: argparse.Namespace) -> str:
    """Return what was asked for, as options of the make target; empty for its defaults."""
    given = {"--only": args.only or None, "--judges": args.judges, "--tier": args.tier}
    if args.rounds != ROUNDS:
        given["--rounds"] = args.rounds
    return " ".join(f"{name} {value}" for name, value in given.items() if value is not None)


class Benchmark:
    """The rows so far, in one results file or in memory."""

    def __init__(self, device: str, path: Path | None, logs: Path, *, options: str = "") -> None:
        self._device = device
        self._command = "make bench-honest" + (f" ARGS='{options}'" if options else "")
        self._path = path
        self._logs = logs
        kept = rows_of(path, commit()) if path is not None else []
        self._rows: dict[str, Row] = {row["key"]: row for row in kept}
        self._environment: Row = {}
        if path is not None and kept:
            self._environment = json.loads(path.read_text(encoding="utf-8"))["environment"]
        self._lock = threading.Lock()
        self._start = self._end = 0.0
        self._sharing = 1

    def run(self, jobs: Sequence[Job], slots: Sequence[str], *, seconds: float | None) -> list[Row]:
        """Judge what is missing and return all rows of the jobs; one judge for each slot."""
        self._start = time.monotonic()
        self._end = self._start + (seconds if seconds is not None else float("inf"))
        self._logs.mkdir(parents=True, exist_ok=True)
        self._rows = fresh(self._rows, [run for job in jobs for run in runs_of(job)])
        missing = [job for job in jobs if any(key not in self._rows for key in keys_of(job))]
        self._sharing = max(map(slots.count, slots))
        names = [f"{i}:{gpu}" for i, gpu in enumerate(slots)]
        judges = {
            name: HonestJudge(
                self._device, gpu=name.partition(":")[2] or None, log=self._logs / f"judge{i}.log"
            )
            for i, name in enumerate(names)
        }
        try:
            run_jobs(
                missing, names, lambda job, name: self._work(job, judges[name]),
                start_until=self._end,
            )  # fmt: skip
        finally:
            for judge in judges.values():
                judge.close()
        keys = [key for job in jobs for key in keys_of(job)]
        return [self._rows[key] for key in keys if key in self._rows]

    def _work(self, job: Job, judge: HonestJudge) -> None:
        runs = [run for run in runs_of(job) if run.key not in self._rows]
        for found in judge.run(job, runs, until=self._end):
            row = found | {"judges_per_gpu": self._sharing}
            with self._lock:
                self._rows[row["key"]] = row
                if not self._environment and row["error"] is None:
                    self._environment = judge.environment
                self._write()
            spent = f"{time.monotonic() - self._start:6.0f} s"
            print(f"{spent} {row['key']}: {told(row)} ({row['wall_s']:.1f} s)", flush=True)

    def _write(self) -> None:
        if self._path is None:
            return
        rows = sorted(self._rows.values(), key=lambda row: str(row["key"]))
        write_results(
            self._path,
            command=self._command,
            environment=self._environment,
            rows=rows,
            summary=summarise(rows),
        )


if __name__ == "__main__":
    sys.exit(main())
