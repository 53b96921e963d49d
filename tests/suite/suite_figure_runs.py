"""Run folders with made-up verdicts, written as a run writes them."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from hotloop.core.attempt import Attempt
from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.problem import Policy, Problem, ProblemInfo, ProblemKind
from hotloop.core.record import to_json
from hotloop.core.verdict import Evidence, Performance, Stage, Status, Tier, Verdict
from hotloop.store.sqlite import SqliteStore
from hotloop.suite.figures_rows import SuiteRun
from hotloop.testing.fakes import make_spec

BASELINES_MS = {"eager": 4.0, "compile": 2.0}
KERNEL = "import torch\nx = {n}\n"
WITH_LIBRARY = """
import torch, triton
import triton.language as tl
@triton.jit
def shift(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) + {n})
class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.matmul(a, b)
        shift[(1,)](c, BLOCK=128)
        return c
"""


@dataclass(frozen=True, kw_only=True)
class Made:
    """A run: what each attempt came to (ms of the fast tier, or a Status), and the rest of it."""

    outcomes: tuple = ()
    finals: dict = field(default_factory=dict)
    """Attempt number: ms, a Status, or a whole Performance."""
    tokens: tuple | None = (100,)
    """Of each attempt, the last one repeated; None in it: unknown. None: no note was written."""
    usd: float | None = 0.5
    source: str = KERNEL
    language: str = "triton"
    problem: str = "# x\n"
    options: dict = field(default_factory=dict)
    checks: tuple = ("conduct",)
    final_tier: Tier = Tier.FINAL
    action: str = "draft"
    actions: dict = field(default_factory=dict)
    """Attempt number: its action, where it is another one."""
    parents: dict = field(default_factory=dict)
    """Attempt number: those of its parents."""
    generator: str = "model"
    precision: str = "as_shipped"
    device: str = "cuda"
    reason: str = "calls"
    message: str | None = None
    is_loaded: bool = True
    info: dict = field(default_factory=dict)
    ideas: dict | None = None
    is_parallel: bool = False
    """Whether all calls were under way before the first was answered."""


def run_at(tmp_path, number, made=None, *, level=1, title="19_ReLU", **more):
    """Return a suite's run; nothing is written when nothing was made."""
    policy = made.precision if made else "as_shipped"
    kind = made.generator if made else "model"
    folder = Path(tmp_path) / f"{level}-{number}-{kind}-{policy}"
    if made is not None:
        write_run(folder, made, f"kernelbench/{level}/{number}")
    return SuiteRun(level=level, problem_id=number, folder=folder, title=title, **more)


def write_run(folder, made, name):
    problem = Problem(
        name=name,
        kind=ProblemKind.KERNELBENCH,
        source=made.problem,
        policy=Policy(precision=made.precision),
    )
    with SqliteStore(folder) as store:
        spec = make_spec(problem, device=made.device)
        spec = replace(spec, generator=made.generator, options={**spec.options, **made.options})
        store.begin(spec, problem)
        if made.is_loaded:
            store.note("setup", {"info": to_json(_info(problem, made)), "setup_s": 1.0})
        if made.ideas is not None:
            store.note("ideas", {"cost": made.ideas})
        for n in range(1, len(made.outcomes) + 1) if made.is_parallel else ():
            store.propose(_asked(n, made), None)
        candidates = [
            _attempt(store, n, outcome, made) for n, outcome in enumerate(made.outcomes, 1)
        ]
        for n, outcome in made.finals.items():
            verdict = _final(candidates[n - 1].id, outcome, made)
            note = {"attempt_id": n, "candidate_id": candidates[n - 1].id}
            store.note("final", {**note, "verdict": to_json(verdict)})
        store.note("stopped", {"reason": made.reason, "message": made.message})


def measured(ms, *, is_final, **changes):
    ratios = {name: baseline / ms for name, baseline in BASELINES_MS.items()}
    made = Performance(
        latency_ms=ms, spread_ms=0.01, samples=9, timer="cupti", l2="cold",
        peak_memory_bytes=1000, baselines=BASELINES_MS, speedup=ratios,
        speedup_ci={k: (v * 0.99, v * 1.01) for k, v in ratios.items()} if is_final else {},
    )  # fmt: skip
    return replace(made, **changes)


def _info(problem, made):
    on_gpu = made.device == "cuda"
    info = ProblemInfo(
        problem_id=problem.id, device=made.device, inputs=(), outputs=(), parameters=(),
        graph=None, attention=None, flops=None, io_bytes=4, rankable=True,
        baselines_ms=BASELINES_MS if on_gpu else {},
    )  # fmt: skip
    return replace(info, **made.info)


def _asked(n, made):
    return Attempt(
        id=n, action=made.actions.get(n, made.action), point={}, parents=made.parents.get(n, ()),
        generator=made.generator,
        candidate_id=None, verdict=None, objective=None, started_s=10.0 * n - 10, finished_s=None,
    )  # fmt: skip


def _attempt(store, n, outcome, made):
    text = made.source.replace("{n}", str(n))
    sources = (SourceFile(path="kernel.py", text=text),)
    candidate = Candidate(language=made.language, sources=sources)
    attempt = replace(_asked(n, made), candidate_id=candidate.id)
    store.propose(attempt, candidate)
    if made.tokens is not None:
        tokens = made.tokens[min(n, len(made.tokens)) - 1]
        cost = {"calls": 1, "tokens": tokens, "usd": made.usd, "call_s": 1.0}
        store.note("call_cost", {"attempt": n, **cost})
    if outcome is None:
        return candidate
    passed = isinstance(outcome, float)
    verdict = _fast(candidate.id, outcome, made) if passed else _failed(candidate.id, outcome)
    objective = outcome if passed else None
    store.conclude(replace(attempt, verdict=verdict, objective=objective, finished_s=10.0 * n))
    return candidate


def _fast(candidate_id, ms, made):
    performance = measured(ms, is_final=False) if made.device == "cuda" else None
    return _passed(candidate_id, performance, tier=Tier.FAST, device=made.device)


def _final(candidate_id, outcome, made):
    if isinstance(outcome, Status):
        return _failed(candidate_id, outcome, tier=Tier.FINAL)
    given = measured(outcome, is_final=True) if isinstance(outcome, float) else outcome
    return _passed(candidate_id, given, tier=made.final_tier, checks=made.checks)


def _passed(candidate_id, performance, **more):
    return Verdict(
        status=Status.PASSED, stage=Stage.PERFORMANCE, message="passed",
        candidate_id=candidate_id, problem_id="p", performance=performance,
        **{"device": "cuda", **more},
    )  # fmt: skip


def _failed(candidate_id, status, tier=Tier.FAST):
    kind = "no_cases" if status is Status.INCONCLUSIVE else "wrong_values"
    return Verdict(
        status=status, stage=Stage.CORRECTNESS, message="wrong", candidate_id=candidate_id,
        problem_id="p", tier=tier, device="cuda",
        evidence=Evidence(kind=kind, message="what was found\nmore", details={"rule": "tile"}),
    )  # fmt: skip
