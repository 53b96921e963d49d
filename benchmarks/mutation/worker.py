"""One worker: an oracle process and a judge, both warm, that take one part of a kernel's mutants.

While the oracle searches, the judge loads the problem; while one mutant is judged, the next ones
are compiled. The correct kernel has to pass before and after the mutants of a part: a judge, or a
GPU, that refuses everything would kill them all.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.mutation.oracle_client import OracleClient
from benchmarks.mutation.plan import Choice, Chosen, Progress, Row, row_of, written
from benchmarks.mutation.rule import Mutant
from benchmarks.mutation.substrates import Substrate
from benchmarks.mutation.untimed_verifier import UntimedVerifier
from benchmarks.results_file import ROOT, source_digest
from hotloop import registry
from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.verdict import Tier, Verdict
from hotloop.errors import DeviceLost, HotloopError, InfraError
from hotloop.problems import load_problem_spec

DATA_VARIABLE = "HOTLOOP_KERNELBENCH"
CALL_TIMEOUT_S = {"cpu": 120.0, "cuda": 20.0}
"""Of the verifier. The machine may be shared: a kernel that waits is not one that hangs."""
MAX_ORIGINAL_RATIO = 4.0
"""The correct kernel's error over eager's: beyond it the oracle could not tell it from a mutant."""
Judged = tuple[Mutant, Row]


class SubstrateFault(Exception):
    """The correct kernel does not pass, so its mutants say nothing."""


@dataclass(frozen=True, slots=True)
class Setup:
    """Where and how long mutants are judged."""

    device: str
    gpus: tuple[str, ...]
    """One entry a worker: the GPU that it uses, empty on a CPU."""
    logs: Path
    part: int = 20
    """Mutants of one kernel that a worker takes at a time."""
    end_s: float = float("inf")
    """time.monotonic() after which no mutant is begun."""
    environment: dict[str, Any] = field(default_factory=dict)
    """What a judge says of its machine, filled in when one does."""

    def left_s(self) -> float:
        """Return the seconds that are left."""
        return min(1e6, self.end_s - time.monotonic())


@dataclass(frozen=True, slots=True)
class Books:
    """What all workers share: what is to be judged, and what was."""

    choice: Choice
    chosen: Chosen
    progress: Progress


@dataclass(frozen=True, slots=True)
class Job:
    """A range of the chosen mutants of one kernel."""

    substrate: Substrate
    first: int
    last: int
    tries: int = 0


def candidate_of(substrate: Substrate, source: str) -> Candidate:
    """Return the candidate of one source in the substrate's language."""
    entry = "kernel.cu" if substrate.language == "cuda" else "kernel.py"
    files = (SourceFile(path=entry, text=source),)
    return Candidate(language=substrate.language, sources=files, entry=entry)


class Worker:
    """One oracle and one judge."""

    def __init__(self, setup: Setup, number: int, books: Books) -> None:
        self._setup, self._books = setup, books
        self._logs = setup.logs / f"worker{number}"
        self._logs.mkdir(parents=True, exist_ok=True)
        self._gpu = setup.gpus[number]
        self._oracle = OracleClient(self._logs / "oracle.log", device=setup.device, gpu=self._gpu)
        self._verifier = self._new_verifier()
        self._beside = ThreadPoolExecutor(1)
        self._digest = source_digest()

    def close(self) -> None:
        """End both processes."""
        self._beside.shutdown(wait=True, cancel_futures=True)
        self._oracle.__exit__()
        self._verifier.close()

    def renew(self) -> None:
        """Take another judge: the last one failed, or gave up its GPU."""
        self._verifier.close()
        self._verifier = self._new_verifier()

    def run(self, job: Job) -> Row:
        """Judge the mutants of a job that have no row yet; returns a note with a fault if any.

        Raises:
            InfraError: the machine failed, or a judge gave up its GPU; nothing of the job is kept.
        """
        start = time.monotonic()
        note: Row = {"substrate": job.substrate.name, "fault": None, "judged": 0}
        try:
            note["judged"] = self._run(job)
        except InfraError:
            raise
        except (SubstrateFault, HotloopError, RuntimeError) as exc:
            note["fault"] = f"{type(exc).__name__}: {exc}"[:600]
        if note["judged"] or note["fault"]:
            took_s = time.monotonic() - start
            told = note["fault"] or f"{note['judged']} judged"
            print(f"{job.substrate.name}[{job.first}:]: {told} in {took_s:.0f} s", flush=True)
        return note

    def _new_verifier(self) -> UntimedVerifier:
        return UntimedVerifier(
            self._setup.device,
            log_path=self._logs / "judge.log",
            call_timeout_s=CALL_TIMEOUT_S[self._setup.device],
            gpu=self._gpu or None,
        )

    def _run(self, job: Job) -> int:
        substrate = job.substrate
        is_begun = substrate.kernel is not None and substrate.name in self._books.progress.begun
        if is_begun and not self._missing(job, substrate.source()):
            return 0  # judged before: no need to load the problem
        problem = load_problem_spec(
            substrate.problem if substrate.needs_data else ROOT / substrate.problem,
            device=self._setup.device,
            data=os.environ.get(DATA_VARIABLE),
            settings=dict(substrate.settings),
        )
        searched: Future[list[Judged]] | None = None
        if substrate.kernel is not None:
            searched = self._beside.submit(self._search, job, problem, substrate.source())
        info = self._verifier.load(problem)
        told_of = self._verifier.environment.items()
        self._setup.environment.update({k: v for k, v in told_of if k != "gpu_shared"})
        source = self._source(substrate, info)
        self._control(substrate, source)
        if searched is None:
            searched = self._beside.submit(self._search, job, problem, source)
        found = searched.result()
        judged = self._judge(substrate, [(m, row) for m, row in found if "runs" in row])
        if judged:
            self._control(substrate, source)
        rows = [row for _, row in found if "runs" not in row] + judged
        for row in rows:
            row.pop("runs", None)
            self._books.progress.add(row)
        return len(rows)

    def _missing(self, job: Job, source: str) -> list[Mutant]:
        books, name = self._books, job.substrate.name
        part = books.chosen.of(job.substrate, source)[job.first : job.last]
        rows = books.progress.rows
        return [m for m in part if not books.choice.is_done(rows.get(f"{name}/{m.digest}"))]

    def _source(self, substrate: Substrate, info: ProblemInfo) -> str:
        if substrate.kernel is not None:
            return substrate.source()
        generator = registry.load(registry.GENERATORS, "builtin")()
        strategy = registry.load(registry.STRATEGIES, "tune")(generator.space(info), 0)
        text: str = generator.generate(info, strategy.ask(1)[0]).candidate.text()
        return text

    def _search(self, job: Job, problem: Problem, source: str) -> list[Judged]:
        """Ask the oracle for each mutant of the job; rows of those that run are marked."""
        substrate, start = job.substrate, time.monotonic()
        told = self._oracle.load(substrate, problem.source, written(substrate, source))
        if told["outcome"] != "ran" or told["oob"]["loads"] or told["oob"]["stores"]:
            raise SubstrateFault(f"the oracle on the correct kernel: {told}")
        if not told["cases"]:
            raise SubstrateFault("the oracle has no inputs that tell right from wrong")
        if told["worst_ratio"] > MAX_ORIGINAL_RATIO:
            print(f"{substrate.name}: the correct kernel is {told}", flush=True)
        missing = self._missing(job, source)
        answers = self._oracle.judge([m.source for m in missing], left_s=self._setup.left_s())
        each_s = round((time.monotonic() - start) / max(1, len(answers)), 3)
        found = []
        for mutant, answer in zip(missing, answers, strict=False):
            row = row_of(substrate, source, mutant)
            row |= {"device": self._setup.device, "oracle": answer, "oracle_s": each_s}
            if answer["outcome"] in ("shown", "not_shown"):
                row["runs"] = True  # else refusing it says nothing of the verifier
            found.append((mutant, row))
        return found

    def _control(self, substrate: Substrate, source: str) -> None:
        right = candidate_of(substrate, written(substrate, source))
        verdict = self._verifier.verify(right, Tier.FAST)
        if verdict.status.value != "PASSED":
            raise SubstrateFault(f"the correct kernel is {verdict.status}: {verdict.message}")

    def _judge(self, substrate: Substrate, found: Sequence[Judged]) -> list[Row]:
        """Return the rows with verdicts, as far as the time goes."""
        candidates = [candidate_of(substrate, mutant.source) for mutant, _ in found]
        builds = [self._beside.submit(self._build, c) for c in candidates]
        rows = []
        for candidate, (_, row) in zip(candidates, found, strict=True):
            if self._setup.left_s() <= 0:
                break
            rows.append(row | self._verdicts(candidate, row))
        for build in builds:
            build.cancel()
        return rows

    def _build(self, candidate: Candidate) -> None:
        if self._setup.left_s() > 0:
            with contextlib.suppress(HotloopError):  # `verify` says what is wrong
                self._verifier.build(candidate)

    def _verdicts(self, candidate: Candidate, row: Row) -> Row:
        start = time.monotonic()
        more: Row = {"sources": self._digest}
        counts = row["oracle"]["outcome"] == "shown"
        sampled = counts and self._books.choice.in_final_sample(row["key"])
        try:
            verdict = self._verifier.verify(candidate, Tier.FAST)
            more |= {"verdict": told(verdict), "verify_s": round(time.monotonic() - start, 3)}
            survives = (
                counts and verdict.status.value == "PASSED" and self._books.choice.final_share > 0
            )
            if sampled or survives:
                start = time.monotonic()
                more["final"] = told(self._verifier.verify(candidate, Tier.FINAL))
                more |= {"sampled": sampled, "final_s": round(time.monotonic() - start, 3)}
        except DeviceLost:
            raise
        except HotloopError as exc:
            more["fault"] = f"{type(exc).__name__}: {exc}"[:300]
        return more


def told(verdict: Verdict) -> Row:
    """Return what a row keeps of a verdict."""
    cases = verdict.correctness.cases if verdict.correctness else ()
    failed = [case for case in cases if not case.passed]
    return {
        "status": verdict.status.value,
        "stage": verdict.stage.value,
        "message": verdict.message[:200],
        "rule": failed[-1].rule if failed else None,
        "profile": failed[-1].profile if failed else None,
        "profiles": sorted({case.profile for case in cases}),
    }
