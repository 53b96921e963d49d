"""Run folders with made-up verdicts, for the dashboard: written through the real store."""

import os
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from hotloop.core.attempt import Asked, Attempt, Budget
from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.model import CallKey, Message, Prompt, Reply, Role, Usage
from hotloop.core.problem import Problem, ProblemInfo, ProblemKind, TensorSpec
from hotloop.core.record import to_json
from hotloop.core.verdict import (
    CaseResult,
    Correctness,
    Evidence,
    KernelResources,
    Performance,
    Stage,
    Status,
    Tier,
    Verdict,
)
from hotloop.store.sqlite import SqliteStore
from hotloop.testing.fakes import make_spec

GPU = "made-up GPU"
BASELINES_MS = {"eager": 4.0, "compile": 2.0}
SOURCE = """import torch
import triton


BLOCK = {n}


class ModelNew(torch.nn.Module):  # attempt {n}
    def forward(self, x):
        return torch.relu(x) * 1.0
"""
WRONG = {
    "output": "output 0", "shape": [2, 4, 256, 128], "total": 262144, "rule": "tile",
    "mismatches": 3072, "box": [[0, 1], [1, 1], [192, 255], [0, 127]], "density": 0.19,
    "patterns": [
        {"dim": 1, "size": 4, "kind": "one", "at": 1},
        {"dim": 2, "size": 256, "kind": "range", "from": 192, "to": 255, "block": 64},
    ],
    "samples": [
        {"index": [0, 1, 200, 64], "got": "1.5", "expected": "0.25"},
        {"index": [1, 1, 255, 3], "got": "-0.5", "expected": "0.5"},
        {"index": [1, 1, 193, 90], "got": "nan", "expected": "0.5"},
    ],
}  # fmt: skip
"""Evidence as the judge's diagnosis writes it."""


@dataclass(frozen=True, kw_only=True)
class Told:
    """Foreign texts of a run."""

    error: str = "the values are wrong"
    kernel: str = "relu_kernel"
    idea: str | None = None
    prompt: str = "Write a faster kernel."
    reasoning: str = "The loads are not coalesced."
    reply: str = "```python\nimport torch\n```"
    path: str = "kernel.py"
    source: str = SOURCE
    details: dict = field(default_factory=lambda: WRONG)


def make_problem(name="made/relu"):
    return Problem(name=name, kind=ProblemKind.NATIVE, source="import torch\n\nN = 64\n")


@contextmanager
def open_run(folder, *, device="cuda", told=None, budget=None, name="made/relu"):
    """Yield what adds attempts to a new run that a model works on."""
    problem = make_problem(name)
    with SqliteStore(folder) as store:
        limits = budget or Budget(wall_s=600.0, max_calls=40)
        spec = replace(make_spec(problem, device=device, budget=limits), generator="model",
                       strategy="refine", options={"model": "replay:made-up"})  # fmt: skip
        store.begin(spec, problem)
        store.note("setup", {"info": to_json(_info(problem, device)), "setup_s": 3.0})
        yield Writer(store, device, told or Told())


def write_run(folder, outcomes, *, finals=None, parents=None, ended=True, **options):
    """Write a whole run; an outcome is ms (a cost on `cpu`), a Status, or None: no verdict yet."""
    with open_run(folder, **options) as writer:
        for n, outcome in enumerate(outcomes, 1):
            writer.add(n, outcome, (parents or {}).get(n, ()))
        for n, ms in (finals or {}).items():
            writer.final(n, ms)
        if ended:
            writer.stop()
    return folder


@contextmanager
def unsynced():
    """Write without waiting for the disk: hundreds of attempts in a second."""
    real = os.fsync
    os.fsync = lambda descriptor: None
    try:
        yield
    finally:
        os.fsync = real


class Writer:
    """Adds to a run."""

    def __init__(self, store, device, told):
        self.store, self._device, self._told = store, device, told
        self._ids = {}

    def add(self, n, outcome, parents=()):
        """Propose an attempt, have the model asked for it, and conclude it."""
        attempt, candidate = self.propose(n, parents)
        self._call(n)
        cost = {"attempt": n, "calls": 1, "tokens": 900, "usd": 0.01, "call_s": 2.0}
        self.store.note("call_cost", cost)
        if outcome is not None:
            self.conclude(attempt, outcome)
        return candidate

    def propose(self, n, parents=()):
        """Propose an attempt with its candidate."""
        told = self._told
        text = told.source.replace("{n}", str(n))
        language = "triton" if told.path.endswith(".py") else "cuda"
        source = SourceFile(path=told.path, text=text)
        candidate = Candidate(language=language, sources=(source,), entry=told.path)
        self._ids[n] = candidate.id
        asked = Asked(template="optimise" if parents else "first", template_digest="0" * 16,
                      prompt_id="1", sees="memory", idea=told.idea)  # fmt: skip
        attempt = Attempt(
            id=n, action="optimise" if parents else "draft", point={}, parents=tuple(parents),
            generator="model", candidate_id=candidate.id, verdict=None, objective=None,
            started_s=5.0 * n - 5, finished_s=None, asked=asked,
        )  # fmt: skip
        self.store.propose(attempt, candidate)
        return attempt, candidate

    def conclude(self, attempt, outcome):
        """Record a verdict."""
        verdict = self._verdict(attempt.candidate_id, outcome, Tier.FAST)
        objective = outcome if isinstance(outcome, float) else None
        ended = replace(attempt, verdict=verdict, objective=objective, finished_s=5.0 * attempt.id)
        self.store.conclude(ended)
        self.store.spend(5.0)

    def final(self, n, ms):
        """Record a verdict of the final tier."""
        verdict = self._verdict(self._ids[n], ms, Tier.FINAL)
        note = {"attempt_id": n, "candidate_id": self._ids[n], "verdict": to_json(verdict)}
        self.store.note("final", note)

    def stop(self, reason="calls"):
        """End the run."""
        note = {"reason": reason, "budget": to_json(Budget()), "message": None, "waiting": []}
        self.store.note("stopped", note)

    def _call(self, n):
        told, key = self._told, CallKey(problem_id="made", attempt=n)
        system = Message(role=Role.SYSTEM, text="You write kernels.")
        prompt = Prompt(messages=(system, Message(role=Role.USER, text=told.prompt)))
        fields = {"key": to_json(key), "prompt_id": prompt.id}
        self.store.note("call_intent", {**fields, "prompt": to_json(prompt)})
        reply = Reply(text=told.reply, reasoning=told.reasoning, model="made-up-1", seconds=2.0,
                      usage=Usage(prompt=600, completion=300), cost_usd=0.01)  # fmt: skip
        self.store.note("call_response", {**fields, "reply": to_json(reply)})

    def _verdict(self, candidate_id, outcome, tier):
        ids = {"candidate_id": candidate_id, "problem_id": "p", "tier": tier,
               "device": self._device, "isolation": "T1"}  # fmt: skip
        if isinstance(outcome, Status):
            stage = Stage.COMPILE if outcome is Status.COMPILE_ERROR else Stage.CORRECTNESS
            is_wrong = outcome is Status.INCORRECT_NUMERICAL
            evidence = Evidence(
                kind="wrong_values" if is_wrong else "made_up", message=self._told.error,
                details=self._told.details if is_wrong else {"log": self._told.error},
            )  # fmt: skip
            return Verdict(status=outcome, stage=stage, message=self._told.error,
                           evidence=evidence, correctness=_cases(passed=False), **ids)  # fmt: skip
        is_timed = self._device == "cuda"
        return Verdict(
            status=Status.PASSED, stage=Stage.PERFORMANCE if is_timed else Stage.CORRECTNESS,
            message="passed", correctness=_cases(passed=True),
            resources=(KernelResources(name=self._told.kernel, registers=32, num_warps=4),),
            performance=measured(outcome, is_final=tier is Tier.FINAL) if is_timed else None,
            mode="replay" if tier is Tier.FINAL else None, checks=("conduct", "repeats"), **ids,
        )  # fmt: skip


def measured(ms, *, is_final):
    ratios = {name: baseline / ms for name, baseline in BASELINES_MS.items()}
    return Performance(
        latency_ms=ms, spread_ms=ms / 20, samples=40, timer="cupti", l2="cold",
        peak_memory_bytes=1 << 28, baselines=BASELINES_MS, speedup=ratios, roofline_frac=0.5 / ms,
        speedup_ci={k: (v * 0.98, v * 1.02) for k, v in ratios.items()} if is_final else {},
    )  # fmt: skip


def _cases(*, passed):
    case = CaseResult(
        workload="nominal", profile="normal", output="output 0", passed=True, rule=None,
        rmse=2e-4, max_abs=1e-3, eager_rmse=1e-4, eager_max_abs=1e-3, golden_rms=1.0, mismatches=0,
        worst_index=(0, 0, 0, 0),
    )  # fmt: skip
    wrong = replace(case, profile="needles", passed=False, rule="tile", rmse=0.3, mismatches=3072,
                    worst_index=(0, 1, 200, 64))  # fmt: skip
    return Correctness(cases=(case,) * 6 if passed else (case, wrong), deterministic=True)


def _info(problem, device):
    spec = TensorSpec(name="x", shape=(64, 64), dtype="float32", strides=(64, 1))
    is_timed = device == "cuda"
    return ProblemInfo(
        problem_id=problem.id, device=device, inputs=(spec,), outputs=(spec,), parameters=(),
        graph=None, attention=None, flops=3e11, io_bytes=64_000_000, rankable=True,
        environment={"gpu": GPU if is_timed else None},
        baselines_ms=BASELINES_MS if is_timed else {},
        peaks={"copy_gbps": 3000.0, "matmul_tflops": 600.0} if is_timed else {},
    )  # fmt: skip
