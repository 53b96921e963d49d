"""One judge for one GPU, and the rows of the jobs that it is given."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.honest_catalogue import HonestKernel
from benchmarks.honest_plan import Job, Run
from benchmarks.results_file import ROOT, Row
from hotloop import registry
from hotloop.core.audit import Audit
from hotloop.core.candidate import Candidate
from hotloop.core.problem import ProblemInfo
from hotloop.core.verdict import Verdict
from hotloop.errors import DeviceLost, HotloopError
from hotloop.problems import load_problem_spec
from hotloop.verify import LocalVerifier

BUILDERS = 4
"""Kernels that are compiled ahead while the GPU is at work on others."""
CALL_TIMEOUT_S = 120.0
"""Without a GPU: the machine may be shared, and a kernel that waits is not one that hangs."""
MESSAGE = 400


class HonestJudge:
    """Judges the kernels of one problem after the other."""

    def __init__(self, device: str, *, gpu: str | None, log: Path) -> None:
        timeout = CALL_TIMEOUT_S if device == "cpu" else None
        self._verifier = LocalVerifier(device, gpu=gpu, log_path=log, call_timeout_s=timeout)
        self._device = device
        self._audits: dict[str, Audit] = {}

    @property
    def environment(self) -> Row:
        """What the judge says of its machine."""
        return dict(self._verifier.environment)

    def close(self) -> None:
        """End the judge."""
        self._verifier.close()

    def run(self, job: Job, runs: Sequence[Run], *, until: float) -> Iterator[Row]:
        """Load the problem and yield a row for each run until a time.monotonic().

        An error of the machine or of the problem is in the row's `error`, no verdict.

        Raises:
            DeviceLost: this judge has no GPU any more; the others go on with what is left.
        """
        start = time.monotonic()
        try:
            info = self._load(job)
            candidates = {run.kernel.name: self._candidate(run.kernel, info) for run in runs}
        except DeviceLost:
            raise
        except HotloopError as exc:
            spent_s = time.monotonic() - start
            for run in runs:
                yield _row(job, run) | {"error": _text(exc), "load_s": spent_s / len(runs)}
            return
        load_s = (time.monotonic() - start) / len(runs)
        with self._built_ahead(list(candidates.values())):
            for run in runs:
                if time.monotonic() > until:
                    return
                yield _row(job, run) | {"load_s": load_s} | self._judged(run, candidates)

    def _load(self, job: Job) -> ProblemInfo:
        kernel = job.kernels[0]
        problem = load_problem_spec(
            ROOT / job.problem,
            device=self._device,
            settings=dict(kernel.settings if self._device == "cuda" else kernel.small),
        )
        self._verifier.known_audit = self._audits.get(problem.id)
        info = self._verifier.load(problem)
        if info.audit is not None:
            self._audits[problem.id] = info.audit
        return info

    def _candidate(self, kernel: HonestKernel, info: ProblemInfo) -> Candidate:
        if kernel.text is not None:
            return kernel.candidate()
        generator = registry.load(registry.GENERATORS, "builtin")()
        strategy = registry.load(registry.STRATEGIES, "tune")(generator.space(info), 0)
        written = generator.generate(info, strategy.ask(kernel.point + 1)[kernel.point])
        return written.candidate

    @contextlib.contextmanager
    def _built_ahead(self, candidates: Sequence[Candidate]) -> Iterator[None]:
        if self._device == "cpu":
            yield
            return
        pool = ThreadPoolExecutor(BUILDERS, thread_name_prefix="build")
        try:
            for candidate in candidates:
                pool.submit(self._build, candidate)
            yield
        finally:
            # Every verdict waited for its own build, so one is left only where time ran out.
            pool.shutdown(wait=False, cancel_futures=True)

    def _build(self, candidate: Candidate) -> None:
        with contextlib.suppress(HotloopError):  # `verify` builds again and tells what is wrong
            self._verifier.build(candidate)

    def _judged(self, run: Run, candidates: Mapping[str, Candidate]) -> Row:
        start = time.monotonic()
        try:
            verdict = self._verifier.verify(candidates[run.kernel.name], run.tier)
        except DeviceLost:
            raise
        except HotloopError as exc:
            return {"error": _text(exc), "wall_s": time.monotonic() - start}
        return _told(verdict) | {"wall_s": time.monotonic() - start}


def _row(job: Job, run: Run) -> Row:
    kernel = run.kernel
    return {
        "key": run.key,
        "kernel": kernel.name,
        "problem": job.problem,
        "families": list(kernel.families),
        "origin": kernel.origin,
        "language": kernel.language,
        "by_design": kernel.by_design,
        "device": job.device,
        "tier": run.tier.value,
        "round": job.round,
        "status": None,
        "stage": None,
        "message": "",
        "error": None,
        "wall_s": 0.0,
    }


def _told(verdict: Verdict) -> Row:
    evidence = verdict.evidence
    row: dict[str, Any] = {
        "status": verdict.status.value,
        "stage": verdict.stage.value,
        "message": verdict.message[:MESSAGE],
        "candidate_id": verdict.candidate_id,
        "deterministic": verdict.deterministic,
        "mode": verdict.mode,
        "gpu_s": verdict.stage_s.get("gpu"),
        "latency_ms": verdict.performance.latency_ms if verdict.performance else None,
    }
    if not verdict.passed:
        cases = verdict.correctness.cases if verdict.correctness else ()
        row |= {
            "evidence": evidence.kind if evidence else None,
            "failed_cases": [
                [c.workload, c.profile, c.output, c.rule] for c in cases if not c.passed
            ],
        }
    return row


def _text(exc: HotloopError) -> str:
    return f"{type(exc).__name__}: {str(exc)[:MESSAGE]}"
