"""Time the verifier itself: how long a new kernel holds the GPU, and how long its verdict takes.

    make bench-verify                                    twenty-six problems, all GPUs
    python -m benchmarks.verify_throughput --problems kernelbench/1/19 --seconds 500

KernelBench problems come from the data set that HOTLOOP_KERNELBENCH names. Each problem is measured
in a process of its own with one GPU (`verify_problem.py`); judges of several GPUs run at the same
time and share the cores, so the result says how many did. Problems that the results file holds of
the same commit are kept: a benchmark that was cut goes on with the same command.

`--device cpu` only tries the path, at small sizes: no time is shown, no results file is written.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.gpu_pool import Finished, gpu_slug, run_command, run_jobs, visible_gpus
from benchmarks.results_file import RESULTS, ROOT, Row, commit, rows_of, write_results
from benchmarks.verify_problem import DATA_VARIABLE
from benchmarks.verify_suite import SUITE, Entry, entry_of
from benchmarks.verify_summary import smoke_table, summarise, table
from hotloop.errors import DeviceLost

STOP_SPARE_S = 20.0
PROBLEM_LIMIT_S = 300.0
"""A problem that takes longer is a failed row, so that it does not take the others' time."""
PROBLEM_S = 40.0
"""No problem is started with less than this left."""
DRAW = "cpu_draw"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is missing; return 0 when every problem asked for was measured."""
    args = _parse(argv)
    try:
        wanted = [entry_of(name) for name in args.problems.split(",") if name] or list(SUITE)
    except ValueError as exc:
        print(f"verify_throughput: {exc}", file=sys.stderr)
        return 2
    if any(e.kernel is not None for e in wanted) and not os.environ.get(DATA_VARIABLE):
        print(f"verify_throughput: expected {DATA_VARIABLE} to name the data set", file=sys.stderr)
        return 2
    if args.device == "cpu":
        return _smoke(wanted, args)
    try:
        benchmark = Benchmark(args)
    except DeviceLost as exc:
        print(f"verify_throughput: {exc}", file=sys.stderr)
        return 2
    return benchmark.run(wanted)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", default="", help="with commas; by default the suite")
    parser.add_argument("--seconds", type=float, default=None, help="wall clock for all of it")
    parser.add_argument("--gpus", type=int, default=None, help="how many; by default all")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--logs", type=Path, default=ROOT / "runs" / "bench-verify")
    parser.add_argument(
        "--out", type=Path, help="by default benchmarks/results/verify_throughput_GPU.json"
    )
    return parser.parse_args(argv)


def measure(
    entry: Entry, gpu: str, *, device: str, logs: Path, deadline: float
) -> Row | None:  # fmt: skip
    """Measure one problem in a child; None when the deadline of all stopped it."""
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / (entry.problem.replace("/", "-").removesuffix(".py") + ".judge.log")
    command = [sys.executable, "-m", "benchmarks.verify_problem", entry.problem]
    command += ["--device", device, "--log", str(log.resolve())]
    env = {"CUDA_VISIBLE_DEVICES": gpu} if device == "cuda" else {}
    limit = time.monotonic() + PROBLEM_LIMIT_S
    done = run_command(command, env=env, deadline=min(deadline, limit))
    if done.code is None and deadline < limit:
        return None
    row = {"problem": entry.problem, "what": "verdicts"} | _answer(done)
    return row | {"key": entry.problem, "gpu_index": gpu}


def _answer(done: Finished) -> Row:
    if done.code is None:
        return {"error": f"not done within {PROBLEM_LIMIT_S:.0f} s"}
    try:
        row: Row = json.loads(done.stdout)
    except ValueError:
        return {"error": f"exit code {done.code} without a JSON answer: {done.last_words}"}
    return row


class Benchmark:
    """The rows so far, in one results file."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._gpus = visible_gpus(args.gpus)
        self._path = args.out or RESULTS / f"verify_throughput_{gpu_slug()}.json"
        self._logs = args.logs.resolve()
        self._rows = {row["key"]: row for row in rows_of(self._path, commit())}
        self._lock = threading.Lock()
        self._start = time.monotonic()
        self._end = self._start + (args.seconds if args.seconds is not None else float("inf"))

    def run(self, wanted: Sequence[Entry]) -> int:
        """Measure what is missing, print the table."""
        missing = [entry for entry in wanted if entry.problem not in self._rows]
        # Those with the longest set-up first, so that no GPU is left alone with one at the end.
        missing.sort(key=lambda entry: entry.kernel is not None)
        left = run_jobs(missing, self._gpus, self._measure, start_until=self._end - PROBLEM_S)
        if DRAW not in self._rows and time.monotonic() < self._end - PROBLEM_S:
            self._draw()  # alone: no judge uses the cores now
        self._write()
        print(table(self._ordered()))
        done = [e for e in wanted if self._rows.get(e.problem, {"error": ""})["error"] is None]
        print(json.dumps(self._summary(), indent=1))
        print(f"{len(done)} of {len(wanted)} problems; {len(left)} not started; {self._path}")
        return 0 if len(done) == len(wanted) else 1

    def _measure(self, entry: Entry, gpu: str) -> None:
        row = measure(
            entry, gpu, device="cuda", logs=self._logs, deadline=self._end - STOP_SPARE_S
        )  # fmt: skip
        outcome = "stopped at the deadline"
        if row is not None:
            self._keep(entry.problem, row)
            outcome = row["error"] or "measured"
        spent_s = time.monotonic() - self._start
        print(f"{spent_s:6.0f} s {entry.problem} on GPU {gpu}: {outcome}", flush=True)

    def _draw(self) -> None:
        command = [sys.executable, "-m", "benchmarks.cpu_draw"]
        done = run_command(command, env={}, deadline=self._end)
        if done.code is not None:
            row = {"problem": "kernelbench/1/19", "key": DRAW, "error": None} | _answer(done)
            self._keep(DRAW, row | {"what": DRAW})

    def _keep(self, key: str, row: Row) -> None:
        with self._lock:
            self._rows[key] = row
        self._write()

    def _ordered(self) -> list[Row]:
        keys = [*(entry.problem for entry in SUITE), DRAW]
        return [self._rows[key] for key in keys if key in self._rows]

    def _summary(self) -> Row:
        return summarise(
            self._ordered(), parallel_judges=len(self._gpus), cpu_cores=os.cpu_count() or 0
        )

    def _write(self) -> None:
        with self._lock:
            rows = self._ordered()
            environment: Row = next((r["environment"] for r in rows if r.get("environment")), {})
            write_results(
                self._path,
                command="make bench-verify",
                environment=environment,
                rows=rows,
                summary=self._summary(),
            )


def _smoke(wanted: Sequence[Entry], args: argparse.Namespace) -> int:
    deadline = time.monotonic() + (args.seconds or 3600.0)
    found = (
        measure(entry, "", device="cpu", logs=args.logs.resolve(), deadline=deadline)
        for entry in wanted
    )
    rows = [row for row in found if row is not None]
    print("without a GPU: kernels are checked at small sizes, nothing is timed or written")
    print(smoke_table(rows))
    return 0 if len(rows) == len(wanted) and all(row["error"] is None for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
