"""Tune and time the attention problems with the built-in generator; write a results file.

    make bench-attention ARGS=--plan            which rows there are, and how long they take
    make bench-attention ARGS='--slice 1'       the first slice of that plan: under 8 minutes
    python -m benchmarks.attention --rows full,causal-64,s16384 --seconds 470

Each row is one `hotloop optimize` in a process of its own with one GPU; the GPUs of the machine
take the rows in turn. Rows are kept in `attention_GPU.partial.json`, rewritten after each. Those of
the same commit are not measured again: the same command goes on where `--slice` or `--seconds` cut
it, and a row that was cut starts again. When the last row is there, the file becomes
`attention_GPU.json`; `--publish` does that with the rows there are.

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
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.attention_cases import CASES, MAIN_S, Case, select, without_files
from benchmarks.attention_plan import (
    SLICE_S,
    STOP_SPARE_S,
    Slice,
    by_weight,
    estimate_s,
    measured_s,
    plan_text,
    seconds,
    slices,
)
from benchmarks.attention_queue import RowQueue, serve
from benchmarks.attention_run import RunOptions, measure
from benchmarks.attention_table import add_reference, smoke_table, summarise, table
from benchmarks.attention_targets import load_reasons, target_lines
from benchmarks.gpu_pool import gpu_slug, visible_gpus
from benchmarks.results_file import RESULTS, ROOT, Row, commit, rows_of, write_results
from hotloop.errors import DeviceLost, HotloopError

PLANNED_ON = RESULTS / "attention_h200.json"
"""Where a plan learns how long rows take; a file of the project, so that slices have the same
numbers on every machine."""
NO_LIMIT_S = 86400.0
RunRow = Callable[[Case, str, RunOptions], Row | None]
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
            print(plan_text(cases, args.gpus or 1, known_seconds(), skipped))
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
        help="rows that another machine measured, of the same commit; repeatable",
    )  # fmt: skip
    parser.add_argument("--summarise", type=Path, metavar="FILE", help="of a results file, anew")
    return parser.parse_args(argv)


def known_seconds() -> dict[str, float]:
    """Return how long rows took that the project's own results file has."""
    if not PLANNED_ON.exists():
        return {}
    return measured_s(json.loads(PLANNED_ON.read_text(encoding="utf-8"))["rows"])


class Benchmark:
    """The rows so far, in one results file."""

    def __init__(
        self,
        args: argparse.Namespace,
        gpus: Sequence[str],
        path: Path,
        run_row: RunRow = measure,
    ) -> None:
        """Read the rows that are kept.

        Args:
            args: the command's options.
            gpus: as `CUDA_VISIBLE_DEVICES` takes them.
            path: the results file.
            run_row: runs one row on one GPU.
        """
        self._args = args
        self._gpus = gpus
        self._run_row = run_row
        self._path = path
        self._partial = partial_path(path)
        self._commit = commit()
        self._rows = kept_rows([path, *args.take, self._partial], self._commit)
        self._reasons = load_reasons()
        self._known = known_seconds()
        self._lock = threading.Lock()
        self._skipped: Sequence[Case] = ()
        limit_s = args.seconds if args.seconds is not None else NO_LIMIT_S
        if args.slice is not None:
            limit_s = min(limit_s, SLICE_S)
        self._start = time.monotonic()
        self._end = self._start + limit_s

    def run(self, cases: Sequence[Case], skipped: Sequence[Case]) -> int:
        """Measure the cases that are missing, print the table and the targets."""
        self._skipped = skipped
        if self._args.slice is not None:
            cases = chosen_slice(slices(cases, len(self._gpus), self._known), self._args.slice)
        missing = [case for case in by_weight(cases) if case.key not in self._rows]
        queue = RowQueue(missing, self._estimate, self._end - STOP_SPARE_S)
        left = serve(queue, self._gpus, self._measure)
        summary = self._write()
        done = [case for case in cases if case.key in self._rows and not self._error(case)]
        path = self._publish()
        print(table(self._ordered()))
        print("\n".join(target_lines(summary["targets"])))
        for case in skipped:
            print(f"{case.key}: skipped: {case.path.name} is not there")
        print(f"{len(done)} of {len(cases)} rows; {len(left)} not started; {path}")
        return 0 if len(done) == len(cases) else 1

    def _estimate(self, case: Case) -> float:
        return estimate_s(case, self._known, self._args.budget)

    def _error(self, case: Case) -> str | None:
        error: str | None = self._rows[case.key]["error"]
        return error

    def _measure(self, case: Case, gpu: str) -> None:
        args = self._args
        options = RunOptions(
            device="cuda",
            budget=args.budget,
            runs=args.runs.resolve() / self._commit,
            deadline=self._end - STOP_SPARE_S,
        )
        print(f"{self._clock()} {case.key}: started on GPU {gpu}", flush=True)
        row = self._run_row(case, gpu, options)
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

    def _write(self) -> Row:
        """Write the rows so far; return their summary."""
        with self._lock:
            rows = self._ordered()
            if self._args.reference is not None:
                add_reference(rows, self._args.reference)
            environment: Row = next((r["environment"] for r in rows if r.get("environment")), {})
            gpus, reasons = len(self._gpus), self._reasons
            summary = summarise(rows, gpus=gpus, skipped=self._skipped, reasons=reasons)
            budget = f" ARGS='--budget {self._args.budget}'" if self._args.budget else ""
            write_results(
                self._partial,
                command=f"make bench-attention{budget}",
                environment=environment,
                rows=rows,
                summary=summary,
            )
            return summary

    def _publish(self) -> Path:
        """Give the results file its name if it is complete; return where it is."""
        there = [case for case in CASES if case.path.is_file()]
        complete = all(c.key in self._rows and not self._error(c) for c in there)
        if not (complete or self._args.publish):
            return self._partial
        os.replace(self._partial, self._path)
        return self._path


def partial_path(path: Path) -> Path:
    """Return where rows are kept until `path` is complete."""
    return path.with_suffix(".partial.json")


def kept_rows(paths: Sequence[Path], measured_commit: str) -> dict[str, Row]:
    """Return the finished rows of a commit by key; those of later files win."""
    return {row["row"]: row for path in paths for row in rows_of(path, measured_commit)}


def summarise_again(path: Path) -> int:
    """Write the summary of a results file anew; its rows, commit and date stay."""
    record = json.loads(path.read_text(encoding="utf-8"))
    gpus = record["summary"].get("parallel_runs", 1)
    skipped = without_files(CASES)
    summary = summarise(record["rows"], gpus=gpus, skipped=skipped, reasons=load_reasons())
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(record | {"summary": summary}, indent=1, sort_keys=True) + "\n")
    os.replace(fresh, path)
    print("\n".join(target_lines(summary["targets"])))
    return 0


def chosen_slice(found: Sequence[Slice], number: int) -> list[Case]:
    """Return the rows of a slice, counted from 1.

    Raises:
        ValueError: there is no such slice.
    """
    if not 1 <= number <= len(found):
        raise ValueError(f"--slice: expected 1 to {len(found)}, got {number}; see --plan")
    return list(found[number - 1].cases)


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
