"""One go at the attention benchmark: which rows are measured, where they are kept and published."""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.attention_cases import CASES, Case
from benchmarks.attention_kept import Wanted, kept_rows, partial_path, stands, this_environment
from benchmarks.attention_plan import (
    SLICE_S,
    STOP_SPARE_S,
    Slice,
    budget_of,
    by_weight,
    estimate_s,
    measured_s,
    slices,
)
from benchmarks.attention_queue import RowQueue, serve
from benchmarks.attention_run import RunOptions, check_nothing_runs, measure
from benchmarks.attention_table import add_reference, summarise, table
from benchmarks.attention_targets import load_reasons, target_lines
from benchmarks.results_file import RESULTS, Row, commit, source_digest, write_results
from hotloop.errors import RunHeld

PLANNED_ON = RESULTS / "attention_h200.json"
"""Where a plan learns how long rows take; a file of the project, so that slices have the same
numbers on every machine."""
NO_LIMIT_S = 86400.0
RunRow = Callable[[Case, str, RunOptions], Row | None]


def known_seconds() -> dict[str, float]:
    """Return how long rows took that the project's own results file has."""
    if not PLANNED_ON.exists():
        return {}
    return measured_s(json.loads(PLANNED_ON.read_text(encoding="utf-8"))["rows"])


@dataclass(frozen=True, slots=True)
class Machine:
    """What a benchmark asks of the machine that it runs on."""

    run_row: RunRow = measure
    """Runs one row on one GPU."""
    environment: Callable[[], Mapping[str, Any]] = this_environment
    digest: Callable[[], str] = source_digest
    """Of the sources as they are now."""


class Benchmark:
    """The rows so far, in one results file."""

    def __init__(
        self,
        args: argparse.Namespace,
        gpus: Sequence[str],
        path: Path,
        machine: Machine = Machine(),  # noqa: B008  frozen
    ) -> None:
        """Read the rows that are kept.

        Args:
            args: the command's options.
            gpus: as `CUDA_VISIBLE_DEVICES` takes them.
            path: the results file.
            machine: what runs rows.

        Raises:
            ValueError: a file holds rows that were measured in another way.
            RunHeld: a run of an earlier benchmark is still alive.
        """
        check_nothing_runs(args.runs)
        self._args = args
        self._gpus = gpus
        self._machine = machine
        self._path = path
        self._partial = partial_path(path)
        self._commit = commit()
        self._digest = machine.digest()
        self._is_moving = False
        wanted = Wanted(
            commit=self._commit,
            digest=self._digest,
            budget=args.budget,
            environment=machine.environment,
        )
        self._rows = kept_rows([path, *args.take, self._partial], wanted)
        self._reasons = load_reasons(self._commit)
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
            cut = slices(cases, len(self._gpus), self._known, asked=self._args.budget)
            cases = chosen_slice(cut, self._args.slice)
        missing = [case for case in by_weight(cases) if not self._stands(case)]
        end = self._end - STOP_SPARE_S
        queue = RowQueue(missing, self._estimate, end, is_there=self._stands)
        left = serve(queue, self._gpus, self._measure)
        summary = self._write()
        done = [case for case in cases if self._stands(case)]
        path = self._publish()
        print(table(self._ordered()))
        print("\n".join(target_lines(summary["targets"])))
        for case in skipped:
            print(f"{case.key}: skipped: {case.path.name} is not there")
        for case in left:
            if case.base is not None and not self._stands(case.base):
                print(f"{case.key}: waits for {case.base.key}, whose kernel it times")
        print(f"{len(done)} of {len(cases)} rows; {len(left)} not started; {path}")
        return 0 if len(done) == len(cases) else 1

    def _estimate(self, case: Case) -> float:
        return estimate_s(case, self._known, self._args.budget)

    def _stands(self, case: Case) -> bool:
        return stands(self._rows.get(case.key))

    def _measure(self, case: Case, gpu: str) -> None:
        if self._has_moved():
            return
        row = self._run(case, gpu)
        if row is None:
            return
        if self._has_moved():
            print(f"{self._clock()} {case.key}: dropped: the sources changed meanwhile", flush=True)
            return
        former = self._rows.get(case.key, {})
        stamp = self._of_base(case) | {
            "budget": budget_of(case, self._args.budget),
            "source_digest": self._digest,
            "tries": former.get("tries", 0) + 1,
        }
        with self._lock:
            self._rows[case.key] = row | stamp
        self._write()
        print(f"{self._clock()} {case.key}: {row['error'] or row['status']}", flush=True)

    def _kernel(self, case: Case) -> str | None:
        """Return the kernel that a row times: that of its base; None where it is to search."""
        base: Row = {} if case.base is None else self._rows.get(case.base.key, {})
        found: str | None = base.get("kernel_source")
        return found

    def _of_base(self, case: Case) -> Row:
        if case.base is None or self._kernel(case) is None:
            return {}
        return {"kernel_of": case.base.key, "schedule": self._rows[case.base.key]["schedule"]}

    def _has_moved(self) -> bool:
        """Whether the sources are no more those that the rows' commit names; say so once."""
        with self._lock:
            if self._machine.digest() == self._digest:
                return False
            if not self._is_moving:
                said = "the sources are not those of the start: no row is begun any more"
                print(f"{self._clock()} {said}; run the command again", flush=True)
            self._is_moving = True
            return True

    def _run(self, case: Case, gpu: str) -> Row | None:
        args = self._args
        options = RunOptions(
            device="cuda",
            budget=args.budget,
            runs=args.runs.resolve() / self._commit,
            deadline=self._end - STOP_SPARE_S,
            kernel=self._kernel(case),
        )
        print(f"{self._clock()} {case.key}: started on GPU {gpu}", flush=True)
        try:
            row = self._machine.run_row(case, gpu, options)
        except RunHeld as exc:
            print(f"{self._clock()} {case.key}: not begun: {exc}", flush=True)
            return None
        if row is None:
            print(f"{self._clock()} {case.key}: stopped at the deadline", flush=True)
        return row

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
        complete = all(self._stands(case) for case in there)
        if not (complete or self._args.publish):
            return self._partial
        os.replace(self._partial, self._path)
        return self._path


def chosen_slice(found: Sequence[Slice], number: int) -> list[Case]:
    """Return the rows of a slice, counted from 1.

    Raises:
        ValueError: there is no such slice.
    """
    if not 1 <= number <= len(found):
        raise ValueError(f"--slice: expected 1 to {len(found)}, got {number}; see --plan")
    return list(found[number - 1].cases)
