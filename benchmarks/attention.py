"""Tune and time the attention problems with the built-in generator; write a results file.

    make bench-attention                        all twelve rows, all GPUs of this machine
    python -m benchmarks.attention --rows full,causal-64 --seconds 500 --reference times.json

Each row is one `hotloop optimize` in a process of its own with one GPU; the GPUs take the rows in
turn. The results file is rewritten after each row. Rows that it holds of the same commit are kept,
so a benchmark that was cut by `--seconds` goes on with the same command.

`--device cpu` only tries the path: nothing is timed there, and no results file is written.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.attention_run import Case, RunOptions, measure
from benchmarks.attention_table import add_reference, smoke_table, summarise, table
from benchmarks.gpu_pool import gpu_slug, run_jobs, visible_gpus
from benchmarks.results_file import RESULTS, ROOT, Row, commit, rows_of, write_results
from hotloop.errors import DeviceLost

VARIANTS = ("full", "causal", "relative", "alibi", "document", "softcap")
CASES = tuple(Case(variant, D) for D in (64, 128) for variant in VARIANTS)
DEFAULT_BUDGET = "45s"
STOP_SPARE_S = 30.0
"""Before the end of `--seconds`: what still runs needs this long to drain."""
ROW_S = 90.0
"""No row is started with less than this left: set-up and tuning take longer anyway."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is missing; return 0 when every row asked for was measured."""
    args = _parse(argv)
    try:
        cases = select(args.rows)
        if args.reference is not None:
            add_reference([], args.reference)  # a bad file is found before any work
        if args.device == "cpu":
            return _smoke(cases, args)
        return Benchmark(args).run(cases)
    except (ValueError, OSError, KeyError, DeviceLost) as exc:
        print(f"attention: {type(exc).__name__}: {exc}", file=sys.stderr)
        return 2


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", default="", help="such as full,causal-64; by default all twelve")
    parser.add_argument("--budget", default=DEFAULT_BUDGET, help="of each row's search")
    parser.add_argument("--seconds", type=float, default=None, help="wall clock for all of it")
    parser.add_argument("--gpus", type=int, default=None, help="how many; by default all")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--reference", type=Path, help="times of flex and plain Triton, as JSON")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "bench-attention")
    parser.add_argument("--out", type=Path, help="by default benchmarks/results/attention_GPU.json")
    return parser.parse_args(argv)


def select(rows: str) -> list[Case]:
    """Return the cases of `full,causal-64`; all for an empty text.

    Raises:
        ValueError: a name is no variant and no row.
    """
    names = [name.strip() for name in rows.split(",") if name.strip()]
    known = {*VARIANTS, *(case.key for case in CASES)}
    for name in names:
        if name not in known:
            raise ValueError(f"--rows: expected names of {', '.join(sorted(known))}; got {name!r}")
    return [c for c in CASES if not names or c.variant in names or c.key in names]


class Benchmark:
    """The rows so far, in one results file."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._gpus = visible_gpus(args.gpus)
        self._path = args.out or RESULTS / f"attention_{gpu_slug()}.json"
        self._commit = commit()
        self._rows = {row["row"]: row for row in rows_of(self._path, self._commit)}
        self._lock = threading.Lock()
        limit_s = args.seconds if args.seconds is not None else float("inf")
        self._start = time.monotonic()
        self._end = self._start + limit_s

    def run(self, cases: Sequence[Case]) -> int:
        """Measure the cases that are missing, print the table."""
        missing = [case for case in cases if case.key not in self._rows]
        # Those with the longest set-up first, so that no GPU is left alone with one at the end.
        missing.sort(key=lambda case: -case.D)
        left = run_jobs(missing, self._gpus, self._measure, start_until=self._end - ROW_S)
        self._write()
        print(table(self._ordered()))
        done = [case for case in cases if self._is_measured(case)]
        print(f"{len(done)} of {len(cases)} rows; {len(left)} not started; {self._path}")
        return 0 if len(done) == len(cases) else 1

    def _is_measured(self, case: Case) -> bool:
        row = self._rows.get(case.key)
        return row is not None and row["error"] is None

    def _measure(self, case: Case, gpu: str) -> None:
        args = self._args
        options = RunOptions(
            device="cuda",
            budget=args.budget,
            runs=args.runs.resolve() / self._commit,
            deadline=self._end - STOP_SPARE_S,
        )
        print(f"{self._clock()} {case.key}: started on GPU {gpu}", flush=True)
        row = measure(case, gpu, options)
        if row is None:
            print(f"{self._clock()} {case.key}: stopped at the deadline", flush=True)
            return
        with self._lock:
            self._rows[case.key] = row
        self._write()
        print(f"{self._clock()} {case.key}: {row['error'] or row['status']}", flush=True)

    def _clock(self) -> str:
        return f"{time.monotonic() - self._start:6.0f} s"

    def _ordered(self) -> list[Row]:
        return [self._rows[c.key] for c in CASES if c.key in self._rows]

    def _write(self) -> None:
        with self._lock:
            rows = self._ordered()
            if self._args.reference is not None:
                add_reference(rows, self._args.reference)
            environment: Row = next((r["environment"] for r in rows if r.get("environment")), {})
            budget = self._args.budget
            extra = "" if budget == DEFAULT_BUDGET else f" ARGS='--budget {budget}'"
            write_results(
                self._path,
                command=f"make bench-attention{extra}",
                environment=environment,
                rows=rows,
                summary=summarise(rows, parallel_runs=len(self._gpus), budget=budget),
            )


def _smoke(cases: Sequence[Case], args: argparse.Namespace) -> int:
    end = time.monotonic() + (args.seconds or 600.0)
    options = RunOptions(
        device="cpu", budget=args.budget, runs=args.runs.resolve() / "cpu" / commit(),
        deadline=end,
        max_candidates=1,
    )  # fmt: skip
    rows = [row for case in cases if (row := measure(case, "", options)) is not None]
    print("without a GPU: kernels are checked, nothing is timed, no results file is written")
    print(smoke_table(rows))
    return 0 if len(rows) == len(cases) and all(r["status"] == "PASSED" for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
