"""Judge the mutants of one substrate after the other: first the oracle, then the verifier.

A worker is a thread with one oracle process and one judge, both warm for all mutants of a problem.
"""

from __future__ import annotations

import os
import queue
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.mutation.oracle_client import OracleClient
from benchmarks.mutation.plan import Choice, Progress, Row, row_of
from benchmarks.mutation.rule import Mutant, canonical
from benchmarks.mutation.substrates import Substrate
from benchmarks.results_file import ROOT, source_digest
from benchmarks.verify_suite import candidate
from hotloop import registry
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.verdict import Tier, Verdict
from hotloop.errors import HotloopError
from hotloop.problems import load_problem_spec
from hotloop.verify import LocalVerifier

DATA_VARIABLE = "HOTLOOP_KERNELBENCH"
CALL_TIMEOUT_S = 120.0
"""Of the verifier. The machine may be shared: a kernel that waits is not one that hangs."""
MAX_ORIGINAL_RATIO = 4.0
"""The correct kernel's error over eager's: beyond it the oracle could not tell it from a mutant."""
Say = Callable[[str], None]


class SubstrateFault(Exception):
    """The correct kernel does not pass, so its mutants say nothing."""


def run_all(
    wanted: Sequence[Substrate], choice: Choice, progress: Progress, *, workers: int, logs: Path
) -> list[Row]:
    """Judge what is missing; return one row a substrate, with its fault if it has one."""
    waiting: queue.Queue[Substrate] = queue.Queue()
    for substrate in wanted:
        waiting.put(substrate)
    notes: list[Row] = []

    def work(number: int) -> None:
        worker = Worker(choice, progress, logs / f"worker{number}")
        try:
            while True:
                substrate = waiting.get_nowait()
                notes.append(worker.run(substrate))
        except queue.Empty:
            pass
        except Exception:  # noqa: BLE001  the other workers go on; a resumed run tries again
            traceback.print_exc()
        finally:
            worker.close()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return notes


class Worker:
    """One oracle and one judge."""

    def __init__(self, choice: Choice, progress: Progress, logs: Path) -> None:
        logs.mkdir(parents=True, exist_ok=True)
        self._choice, self._progress = choice, progress
        self._oracle = OracleClient(logs / "oracle.log")
        self._verifier = LocalVerifier(
            "cpu", log_path=logs / "judge.log", call_timeout_s=CALL_TIMEOUT_S
        )
        self._digest = source_digest()

    def close(self) -> None:
        """End both processes."""
        self._oracle.__exit__()
        self._verifier.close()

    def run(self, substrate: Substrate) -> Row:
        """Judge the substrate's mutants that have no row yet."""
        start = time.monotonic()
        note: Row = {"substrate": substrate.name, "family": substrate.family, "fault": None}
        try:
            note["mutants"] = self._run(substrate)
        except (SubstrateFault, HotloopError) as exc:
            note["fault"] = f"{type(exc).__name__}: {exc}"
        print(f"{substrate.name}: {note} in {time.monotonic() - start:.0f} s", flush=True)
        return note

    def _run(self, substrate: Substrate) -> int:
        chosen = None
        if substrate.kernel is not None:
            chosen = self._choice.of(substrate.source())
            if not self._missing(substrate, chosen):
                return len(chosen)  # judged before: no need to load the problem again
        problem = load_problem_spec(
            substrate.problem if substrate.needs_data else ROOT / substrate.problem,
            device="cpu",
            data=os.environ.get(DATA_VARIABLE),
            settings=dict(substrate.settings),
        )
        info = self._verifier.load(problem)
        source = self._source(substrate, info)
        self._check_original(substrate, problem, source)
        chosen = self._choice.of(source) if chosen is None else chosen
        for mutant in self._missing(substrate, chosen):
            self._progress.add(row_of(substrate, source, mutant) | self._judged(mutant))
        return len(chosen)

    def _missing(self, substrate: Substrate, chosen: Sequence[Mutant]) -> list[Mutant]:
        rows = self._progress.rows
        return [m for m in chosen if f"{substrate.name}/{m.digest}" not in rows]

    def _source(self, substrate: Substrate, info: ProblemInfo) -> str:
        if substrate.kernel is not None:
            return substrate.source()
        generator = registry.load(registry.GENERATORS, "builtin")()
        strategy = registry.load(registry.STRATEGIES, "tune")(generator.space(info), 0)
        written = generator.generate(info, strategy.ask(1)[0])
        text: str = written.candidate.text()
        return text

    def _check_original(self, substrate: Substrate, problem: Problem, source: str) -> None:
        told = self._oracle.load(substrate, problem.source, canonical(source))
        if told["outcome"] != "ran" or told["oob"]["loads"] or told["oob"]["stores"]:
            raise SubstrateFault(f"the oracle on the correct kernel: {told}")
        if told["worst_ratio"] > MAX_ORIGINAL_RATIO:
            print(f"{substrate.name}: the correct kernel is {told}", flush=True)
        verdict = self._verifier.verify(candidate(canonical(source)), Tier.FAST)
        if verdict.status.value != "PASSED":
            raise SubstrateFault(f"the correct kernel is {verdict.status}: {verdict.message}")

    def _judged(self, mutant: Mutant) -> Row:
        start = time.monotonic()
        found = self._oracle.judge(mutant.source)
        row: Row = {"oracle": found, "oracle_s": round(time.monotonic() - start, 3)}
        if found["outcome"] not in ("shown", "not_shown"):
            return row  # it does not even run: refusing it says nothing of the verifier
        start = time.monotonic()
        try:
            verdict = self._verifier.verify(candidate(mutant.source), Tier.FAST)
        except HotloopError as exc:
            return row | {"fault": f"{type(exc).__name__}: {exc}"[:300]}
        row["verdict"] = _told(verdict)
        row |= {"verify_s": round(time.monotonic() - start, 3), "sources": self._digest}
        return row


def _told(verdict: Verdict) -> Row:
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
