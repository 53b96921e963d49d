"""Run the corpus of cheats against the verifier: each has to be refused, each honest kernel passed.

    make bench-attacks                                    all programs; on all GPUs where there are
    make bench-attacks ARGS="--device cpu --workers 2"    two judges, in Triton's interpreter
    python -m benchmarks.attacks --only blind,softmax,27 --limit 15 --device cpu

Programs, problems and right answers are those of `tests/attacks` (`attack_programs.py`). They run
at the fast tier, each judge on one problem after the other; on a GPU an attack that passed there is
judged at the final tier too, which is the one whose numbers count. Several judges may share a GPU:
what they refuse is not refused for its time. A results file is written for all programs; for a part
of them (`--only`, `--limit`) only where `--out` says. Rows that the file holds of the same commit
are kept: a benchmark that was cut (`--seconds`) goes on with the same command.

Not here: attacks on the cage (`benchmarks/isolation.py`).
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from benchmarks.attack_programs import Program, chosen, programs
from benchmarks.attack_summary import clean, outcome, row_of, summarise, table, told
from benchmarks.gpu_pool import gpu_slug, run_jobs, seats, visible_gpus
from benchmarks.results_file import RESULTS, ROOT, Row, commit, rows_of, write_results
from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem
from hotloop.core.verdict import Status, Tier, Verdict
from hotloop.errors import DeviceLost, HotloopError
from hotloop.problems import load_problem_spec
from hotloop.verify import LocalVerifier
from hotloop.verify.static_stage import static_verdict

CALL_S = {"cpu": 40.0, "cuda": None}
"""Deadline of one call; None: the judge's own."""
JOB = 24
"""Programs of a problem that one judge takes in one go."""


def main(argv: Sequence[str] | None = None) -> int:
    """Judge the programs; return 0 when each got a right answer."""
    args = _parse(argv)
    try:
        device = args.device if args.device != "auto" else _found_device()
        slots = seats(visible_gpus() if device == "cuda" else [""], args.workers)
        wanted = chosen(programs(args.logs / "problem"), args.only, args.limit)
    except (DeviceLost, ValueError) as exc:
        print(f"attacks: {exc}", file=sys.stderr)
        return 2
    here = [p for p in wanted if device == "cuda" or p.by_text or not p.needs_gpu]
    left_out = [p.key for p in wanted if p not in here]
    path = args.out
    if path is None and not args.only and args.limit is None:
        path = RESULTS / f"attacks_{gpu_slug() if device == 'cuda' else 'cpu'}.json"
    run = AttackRun(device, args.logs, path, left_out, options=_options(args))
    rows = run.run(here, slots, seconds=args.seconds)
    print(table(rows, run.summary()))
    if len(rows) < len(here):
        print(f"attacks: {len(here) - len(rows)} programs were not judged; run again")
    return 0 if len(rows) == len(here) and all(row["ok"] for row in rows) else 1


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--workers", type=int, help="judges; by default one a GPU or CPU")
    parser.add_argument("--only", default="", help="names, corpora, problems, numbers; with commas")
    parser.add_argument("--limit", type=int, help="so many programs, spread over what was chosen")
    parser.add_argument("--seconds", type=float, help="wall clock for all of it")
    parser.add_argument("--logs", type=Path, default=ROOT / "runs" / "bench-attacks")
    parser.add_argument(
        "--out", type=Path, help="by default benchmarks/results/attacks_DEVICE.json"
    )
    return parser.parse_args(argv)


def _options(args: argparse.Namespace) -> str:
    """Return what was asked for, as options of the make target; empty for its defaults."""
    device = f"--device {args.device}" if args.device != "auto" else ""
    workers = f"--workers {args.workers}" if args.workers is not None else ""
    only = f"--only {args.only}" if args.only else ""
    limit = f"--limit {args.limit}" if args.limit is not None else ""
    return " ".join(option for option in (device, workers, only, limit) if option)


def _found_device() -> str:
    try:
        visible_gpus(1)
    except DeviceLost:
        return "cpu"
    return "cuda"


def jobs_of(wanted: Sequence[Program]) -> list[list[Program]]:
    """Return the programs in groups of one problem and one deadline, the largest groups first."""
    groups: dict[tuple[Path, float | None], list[Program]] = {}
    for program in wanted:
        groups.setdefault((program.problem, program.call_s), []).append(program)
    parts = [
        group[start : start + JOB]
        for group in groups.values()
        for start in range(0, len(group), JOB)
    ]
    return sorted(parts, key=len, reverse=True)


class AttackRun:
    """The rows so far, in one results file or in memory."""

    def __init__(
        self,
        device: str,
        logs: Path,
        path: Path | None,
        left_out: Sequence[str],
        *,
        options: str = "",
    ) -> None:
        self._device = device
        self._command = "make bench-attacks" + (f" ARGS='{options}'" if options else "")
        self._logs = logs
        self._path = path
        self._left_out = left_out
        kept = rows_of(path, commit()) if path is not None else []
        self._rows: dict[str, Row] = {row["key"]: row for row in kept}
        self._environment: Row = {"device": device}
        if path is not None and kept:
            self._environment |= json.loads(path.read_text(encoding="utf-8"))["environment"]
        self._lock = threading.Lock()
        self._start = time.monotonic()
        self._end = float("inf")

    def run(
        self, wanted: Sequence[Program], slots: Sequence[str], *, seconds: float | None = None
    ) -> list[Row]:
        """Judge what is missing; one judge for each slot, which names a GPU or is empty.

        Rows of programs whose text has changed since are dropped.
        """
        self._end = float("inf") if seconds is None else self._start + seconds
        self._logs.mkdir(parents=True, exist_ok=True)
        texts = {program.key: program.candidate.id for program in wanted}
        self._rows = {
            key: row for key, row in self._rows.items() if texts.get(key) == row["candidate_id"]
        }
        missing = [program for program in wanted if program.key not in self._rows]
        names = [f"{i}:{gpu}" for i, gpu in enumerate(slots)]
        judges = {name: self._judge(name) for name in names}
        try:
            run_jobs(
                jobs_of(missing), names, lambda job, name: self._work(job, judges[name]),
                start_until=self._end,
            )  # fmt: skip
        finally:
            for judge in judges.values():
                judge.close()
        return self._ordered()

    def summary(self) -> Row:
        """Return the counts of what was judged so far."""
        return summarise(self._ordered(), device=self._device, left_out=self._left_out)

    def _judge(self, name: str) -> AttackJudge:
        number, _, gpu = name.partition(":")
        return AttackJudge(self._device, gpu=gpu or None, log=self._logs / f"judge{number}.log")

    def _work(self, job: Sequence[Program], judge: AttackJudge) -> None:
        for program in job:
            if time.monotonic() > self._end:
                break
            row = judge.row(program)
            with self._lock:
                self._rows[program.key] = row
                self._environment |= judge.environment
            spent_s = time.monotonic() - self._start
            print(f"{spent_s:6.0f} s {program.key}: {outcome(row)}", flush=True)
        with self._lock:
            self._write()

    def _ordered(self) -> list[Row]:
        return [row for _, row in sorted(self._rows.items())]

    def _write(self) -> None:
        if self._path is None:
            return
        write_results(
            self._path, command=self._command, environment=self._environment,
            rows=self._ordered(), summary=self.summary(),
        )  # fmt: skip


class Verifies(Protocol):
    """What gives a verdict."""

    def verify(self, candidate: Candidate, tier: Tier) -> Verdict:
        """Return the verdict on a candidate of the problem that is loaded."""
        ...


def both_tiers(program: Program, verifier: Verifies, device: str) -> Row:
    """Judge at the fast tier; on a GPU an attack that passed it also at the final one.

    The row is then that of the final tier, with what the fast one said in `fast_status`.
    """
    found = told(program, verifier.verify(program.candidate, Tier.FAST), device)
    if device != "cuda" or not program.is_attack or found["ok"]:
        return found
    final = told(program, verifier.verify(program.candidate, Tier.FINAL), device)
    return final | {"fast_status": found["status"]}


class AttackJudge:
    """One judge, which loads a problem when another one is loaded."""

    def __init__(self, device: str, *, gpu: str | None, log: Path) -> None:
        self._device = device
        self._gpu = gpu
        self._log = log
        self._call_s: float | None = None
        self._verifier: LocalVerifier | None = None
        self._loaded: Path | None = None

    @property
    def environment(self) -> Row:
        """What the judge says of its machine; empty before it was needed."""
        return dict(self._verifier.environment) if self._verifier else {}

    def close(self) -> None:
        """End the judge. Idempotent."""
        if self._verifier is not None:
            self._verifier.close()
        self._verifier = self._loaded = None

    def row(self, program: Program) -> Row:
        """Judge one program; an error of the machine is in the row's `error`, no status."""
        start = time.monotonic()
        row = row_of(program, self._device)
        try:
            row |= self._judged(program)
        except HotloopError as exc:
            row["error"] = f"{type(exc).__name__}: {clean(str(exc))}"
        return row | {"wall_s": round(time.monotonic() - start, 3)}

    def _judged(self, program: Program) -> Row:
        problem = load_problem_spec(
            program.problem, device=self._device, settings=dict(program.settings)
        )
        if program.by_text:
            return self._by_text(program, problem)
        return both_tiers(program, self._ready(program, problem), self._device)

    def _by_text(self, program: Program, problem: Problem) -> Row:
        """Judge by the static rules alone: what they let pass here must not run either."""
        verdict = static_verdict(
            program.candidate, problem, Tier.FAST, device=self._device, environment={}
        )
        if verdict is None:
            status = Status.PASSED.value
            missed = {"tier": "fast", "status": status, "stage": "static", "as_listed": False}
            return missed | {"message": "the static rules let it pass; it was not run"}
        return told(program, verdict, self._device)

    def _ready(self, program: Program, problem: Problem) -> LocalVerifier:
        call_s = program.call_s or CALL_S[self._device]
        if self._verifier is not None and call_s != self._call_s:
            self.close()
        if self._verifier is None:
            self._call_s = call_s
            self._verifier = LocalVerifier(
                self._device, gpu=self._gpu, log_path=self._log, call_timeout_s=call_s
            )
        if self._loaded != program.problem:
            self._loaded = None
            self._verifier.load(problem)
            self._loaded = program.problem
        return self._verifier


if __name__ == "__main__":
    sys.exit(main())
