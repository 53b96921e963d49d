"""Suite folders with made-up verdicts, for reports: written as `bench` writes them."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

from hotloop.core.attempt import Asked, Attempt
from hotloop.core.audit import Audit
from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.problem import Problem, ProblemInfo, ProblemKind, TensorSpec
from hotloop.core.record import to_json
from hotloop.core.verdict import (
    Evidence,
    KernelResources,
    Performance,
    Stage,
    Status,
    Tier,
    Verdict,
)
from hotloop.store.sqlite import SqliteStore
from hotloop.suite.folder import SUITE_FILE, Member, SuiteRecord, Trouble
from hotloop.testing.fakes import make_spec

BASELINES_MS = {"eager": 4.0, "compile": 2.0}
ENVIRONMENT = {"gpu": "Fake GPU", "driver": "1.2", "torch": "9.9", "isolation": "T1"}
SOURCE = "import torch\n\n\ndef run(x):  # attempt {n}\n    return x + {n}\n"


@dataclass(frozen=True, kw_only=True)
class Made:
    """One problem: what each attempt came to (ms of the fast tier, or a Status)."""

    title: str = "19_ReLU"
    level: int = 1
    outcomes: tuple = ()
    parents: dict = field(default_factory=dict)
    """Of an attempt's number; the others have none."""
    finals: dict = field(default_factory=dict)
    """Attempt number: ms, a Status, or a whole Performance."""
    source: str = SOURCE
    path: str = "kernel.py"
    idea: str | None = None
    error: str = "wrong values"
    kernel_name: str = "kernel"
    device: str = "cuda"
    audit: Audit | None = None
    reason: str = "calls"
    is_run: bool = True
    """Whether there is a run folder at all."""
    is_loaded: bool = True
    trouble: Trouble | None = None


def write_suite(folder, problems, **options):
    """Write a suite's folder; the problems are numbered from 1."""
    members, troubles = [], {}
    for number, made in enumerate(problems, 1):
        name = f"kernelbench/{made.level}/{number}"
        member = Member(
            name=name, level=made.level, number=number, title=made.title, problem_id="p"
        )
        members.append(member)
        if made.trouble is not None:
            troubles[name] = made.trouble
        if made.is_run:
            write_run(Path(folder) / member.folder, made, name)
    device = problems[0].device if problems else "cuda"
    fixed = {
        "generator": "model", "model": "replay:answers", "strategy": "refine", "device": device,
        "language": "triton", "seed": 0, "sees": "memory", "settings": {}, "start": None,
    }  # fmt: skip
    limits = {"wall_s": 900.0, "max_candidates": None, "max_calls": 4, "max_tokens": None,
              "max_usd": None, "parallel": 1}  # fmt: skip
    record = SuiteRecord(
        suite="kernelbench", problems=tuple(members), options=fixed | options, limits=limits,
        troubles=troubles,
    )  # fmt: skip
    Path(folder).mkdir(parents=True, exist_ok=True)
    (Path(folder) / SUITE_FILE).write_text(json.dumps(to_json(record)))
    return Path(folder)


def write_run(folder, made, name):
    problem = Problem(name=name, kind=ProblemKind.KERNELBENCH, source="# x\n")
    with SqliteStore(folder) as store:
        spec = make_spec(problem, device=made.device)
        store.begin(replace(spec, generator="model"), problem)
        if made.is_loaded:
            store.note("setup", {"info": to_json(_info(problem, made)), "setup_s": 1.0})
        ids = [_attempt(store, n, outcome, made) for n, outcome in enumerate(made.outcomes, 1)]
        for n, outcome in made.finals.items():
            verdict = _verdict(ids[n - 1], outcome, made, Tier.FINAL)
            note = {"attempt_id": n, "candidate_id": ids[n - 1]}
            store.note("final", {**note, "verdict": to_json(verdict)})
        store.note("stopped", {"reason": made.reason, "message": None})


def measured(ms, *, is_final, **changes):
    ratios = {name: baseline / ms for name, baseline in BASELINES_MS.items()}
    made = Performance(
        latency_ms=ms, spread_ms=0.01, samples=9, timer="cupti", l2="cold",
        peak_memory_bytes=1 << 30, baselines=BASELINES_MS, speedup=ratios,
        speedup_ci={k: (v * 0.99, v * 1.01) for k, v in ratios.items()} if is_final else {},
    )  # fmt: skip
    return replace(made, **changes)


def _info(problem, made):
    spec = TensorSpec(name="x", shape=(2, 3), dtype="float32", strides=(3, 1))
    return ProblemInfo(
        problem_id=problem.id, device=made.device, inputs=(spec,), outputs=(spec,), parameters=(),
        graph=None, attention=None, flops=None, io_bytes=4, audit=made.audit,
        rankable=made.audit is None or made.audit.rankable, environment=ENVIRONMENT,
        baselines_ms=BASELINES_MS if made.device == "cuda" else {},
    )  # fmt: skip


def _attempt(store, n, outcome, made):
    text = made.source.replace("{n}", str(n))
    candidate = Candidate(
        language="triton" if made.path.endswith(".py") else "cuda",
        sources=(SourceFile(path=made.path, text=text),),
        entry=made.path,
    )
    asked = Asked(template="first", template_digest="0", prompt_id="1", sees="memory",
                  idea=made.idea)  # fmt: skip
    parents = made.parents.get(n, ())
    attempt = Attempt(
        id=n, action="optimise" if parents else "draft", point={}, parents=parents,
        generator="model", candidate_id=candidate.id, verdict=None, objective=None,
        started_s=10.0 * n - 10, finished_s=None, asked=asked,
    )  # fmt: skip
    store.propose(attempt, candidate)
    store.note("call_cost", {"attempt": n, "calls": 1, "tokens": 100, "usd": 0.5, "call_s": 1.0})
    if outcome is not None:
        verdict = _verdict(candidate.id, outcome, made, Tier.FAST)
        objective = outcome if isinstance(outcome, float) else None
        store.conclude(replace(attempt, verdict=verdict, objective=objective, finished_s=10.0 * n))
    return candidate.id


def _verdict(candidate_id, outcome, made, tier):
    ids = {"candidate_id": candidate_id, "problem_id": "p", "tier": tier, "device": made.device,
           "isolation": "T1", "environment": ENVIRONMENT}  # fmt: skip
    if isinstance(outcome, Status):
        evidence = Evidence(kind="wrong_values", message=made.error)
        return Verdict(status=outcome, stage=Stage.CORRECTNESS, message="failed",
                       evidence=evidence, **ids)  # fmt: skip
    performance = outcome
    if isinstance(outcome, float):
        performance = measured(outcome, is_final=tier is Tier.FINAL)
    return Verdict(
        status=Status.PASSED, stage=Stage.PERFORMANCE, message="passed",
        resources=(KernelResources(name=made.kernel_name, registers=32),),
        performance=performance if made.device == "cuda" else None,
        mode="replay" if tier is Tier.FINAL else None,
        checks=("conduct", "repeats") if tier is Tier.FINAL else (),
        checks_skipped={"sanitizer": "no tool here"} if tier is Tier.FINAL else {}, **ids,
    )  # fmt: skip
