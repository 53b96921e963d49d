"""A tiny made-up pilot: journals written as a run writes them, and problems that nobody judges."""

from dataclasses import replace

from benchmarks.pilot_problems import PilotProblem
from benchmarks.pilot_runs import ARMS, PilotRun

from hotloop.core.attempt import Attempt
from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.model import CallKey, Message, Prompt, Reply, Role
from hotloop.core.problem import Problem, ProblemInfo, ProblemKind
from hotloop.core.record import to_json
from hotloop.core.verdict import Evidence, Performance, Stage, Status, Tier, Verdict
from hotloop.llm.call_notes import CallNotes
from hotloop.store.memory import MemoryStore
from hotloop.testing.fakes import make_spec

KERNEL = "import torch\nx = {n}\n"
WITH_LIBRARY = """
import torch, triton
import triton.language as tl
@triton.jit
def shift(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) + 1)
class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.matmul(a, b)
        shift[(1,)](c, BLOCK=128)
        return c
"""


class Journal(MemoryStore):
    """A journal in memory that knows its problem, as a reader of a folder does."""

    def __init__(self, problem):
        super().__init__()
        self._problem = problem

    def problem(self):
        return self._problem


def problem(name="double"):
    return Problem(name=name, kind=ProblemKind.KERNELBENCH, source=f"# {name}\n")


def info(of, **changes):
    made = ProblemInfo(
        problem_id=of.id, device="cuda", inputs=(), outputs=(), parameters=(), graph=None,
        attention=None, flops=None, io_bytes=4, rankable=True,
        baselines_ms={"eager": 2.0, "compile": 1.0}, environment={"gpu": "a GPU"},
    )  # fmt: skip
    return replace(made, **changes)


def run(name="kernelbench/1/1", arm="main", language="triton", operator_class="matmul"):
    level, number = (int(part) for part in name.split("/")[1:])
    return PilotRun(
        problem=PilotProblem(
            name=name, level=level, problem_id=number, title=name, operator_class=operator_class
        ),
        language=language,
        arm=next(a for a in ARMS if a.name == arm),
    )


def passed(candidate_id, ms=0.5, tier=Tier.FAST):
    """PASSED; at the final tier four times as fast as eager and twice as compile at 0.5 ms."""
    ratios = {"eager": 2.0 / ms, "compile": 1.0 / ms}
    is_final = tier is Tier.FINAL
    return Verdict(
        status=Status.PASSED, stage=Stage.PERFORMANCE, message="passed", candidate_id=candidate_id,
        problem_id="p", tier=tier, device="cuda", environment={"gpu": "an H200"},
        performance=Performance(
            latency_ms=ms, spread_ms=0.01, samples=9, timer="cupti", l2="cold",
            baselines={"eager": 2.0, "compile": 1.0},
            speedup=ratios,
            speedup_ci={k: (v * 0.99, v * 1.01) for k, v in ratios.items()} if is_final else {},
        ),
    )  # fmt: skip


def failed(candidate_id, status=Status.INCORRECT_NUMERICAL, kind="wrong_values", **more):
    details = {"rule": more.pop("rule")} if "rule" in more else {}
    return Verdict(
        status=status, stage=Stage.CORRECTNESS, message="wrong", candidate_id=candidate_id,
        problem_id="p", tier=more.pop("tier", Tier.FAST), device="cuda",
        evidence=Evidence(kind=kind, message="first line\nsecond", details=details),
    )  # fmt: skip


def journal(outcomes, *, final=None, reason="candidates", source=KERNEL, of=None, **facts):
    """Return a journal in which each call led to an outcome: ms, a failed verdict maker, or None.

    `final` is ms or a Status for the best candidate's final verdict; None: it has not come.
    """
    found = of or problem()
    store = Journal(found)
    store.begin(make_spec(found), found)
    store.note("setup", {"info": to_json(info(found, **facts)), "setup_s": 1.0})
    notes = CallNotes(store)
    best = None
    for n, outcome in enumerate(outcomes, 1):
        prompt = Prompt(messages=(Message(role=Role.USER, text="p" * 100),))
        key = CallKey(problem_id=found.id, attempt=n)
        notes.intend(key, prompt)
        notes.respond(key, prompt.id, Reply(text="r" * 10, model="somebody"))
        best = _attempt(store, n, outcome, source, best)
    if final is not None:
        maker = failed(best[1], final, tier=Tier.FINAL) if isinstance(final, Status) else None
        verdict = maker or passed(best[1], final, Tier.FINAL)
        store.note("final", {"candidate_id": best[1], "verdict": to_json(verdict)})
    store.note("stopped", {"reason": reason, "message": None})
    return store


def _attempt(store, number, outcome, source, best):
    text = source.replace("{n}", str(number))
    candidate = Candidate(language="triton", sources=(SourceFile(path="kernel.py", text=text),))
    attempt = Attempt(
        id=number, action="draft" if number == 1 else "repair", point={}, parents=(),
        generator="model", candidate_id=candidate.id, verdict=None, objective=None,
        started_s=0.0, finished_s=None,
    )  # fmt: skip
    store.propose(attempt, candidate)
    if outcome is None:
        return best
    is_ms = isinstance(outcome, float)
    verdict = passed(candidate.id, outcome) if is_ms else outcome(candidate.id)
    store.conclude(replace(attempt, verdict=verdict, objective=outcome if is_ms else None))
    if is_ms and (best is None or outcome < best[0]):
        return outcome, candidate.id
    return best
