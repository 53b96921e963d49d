"""The runs of the model pilot: which there are, and one step of each.

A step takes in verdicts, reads the replies that are there, writes the next prompts, and ends where
only answers from outside are missing. All runs share one folder of prompts and replies: where two
arms ask the same prompt under the same key (their first drafts), they get the same reply, so that
arms differ by what they do with it and not by luck.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.pilot_problems import PilotDraw, PilotProblem
from benchmarks.results_file import ROOT
from hotloop import api
from hotloop.core.audit import Audit
from hotloop.core.problem import Problem
from hotloop.engine import RunResult, StopReason
from hotloop.errors import HotloopError
from hotloop.plan import SearchPlan, plan_search
from hotloop.search_options import SearchOptions
from hotloop.store.reader import RunReader
from hotloop.store.sqlite import JOURNAL_FILE, SqliteStore
from hotloop.verify.bundle import Bundle, Item, Key, Verdicts, write_bundle
from hotloop.verify.outside import pending_items, take_in
from hotloop.verify.outside_notes import last_audit
from hotloop.wiring import has_calls_left, shows_counters

MAIN = "main"
CANDIDATES = 6
BUDGET = "24h"
"""Never what ends a run: the clock stands while answers from outside are awaited."""
_REFINE = "benchmarks.pilot_strategies:RefineCalls"
_SAMPLE = "benchmarks.pilot_strategies:SampleCalls"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """How a problem is searched."""

    name: str
    strategy: str
    sees: str


ARMS = (
    Arm(name=MAIN, strategy=_REFINE, sees="memory"),
    Arm(name="sample", strategy=_SAMPLE, sees="nothing"),
    Arm(name="execution", strategy=_REFINE, sees="execution"),
    Arm(name="performance", strategy=_REFINE, sees="performance"),
)
"""`main` covers all problems and both languages, the others the ablation's problems in Triton."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PilotRun:
    """One problem in one language and one arm."""

    problem: PilotProblem
    language: str
    arm: Arm

    @property
    def name(self) -> str:
        """`main/attention-causal.triton`: its folder below the runs."""
        return f"{self.arm.name}/{self.problem.slug}.{self.language}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepped:
    """Where one run stands after a step."""

    run: PilotRun
    state: str
    """`reply`, `verdict` (what is awaited), `done`, `failed`."""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOptions:
    """What all runs of one step share."""

    folder: Path
    data: Path
    max_candidates: int = CANDIDATES
    verdicts: Verdicts | None = None


def pilot_runs(draw: PilotDraw) -> list[PilotRun]:
    """Return all runs: the main arm, then the other arms of the ablation."""
    main, *others = ARMS
    runs = [PilotRun(problem=p, language="triton", arm=main) for p in draw.problems]
    runs += [PilotRun(problem=p, language="cuda", arm=main) for p in draw.cuda]
    return runs + [
        PilotRun(problem=p, language="triton", arm=arm) for arm in others for p in draw.ablation
    ]


def select(runs: Sequence[PilotRun], only: str) -> list[PilotRun]:
    """Return the runs whose names contain one of the texts of `main/,softcap`; all for none.

    Raises:
        ValueError: nothing matches.
    """
    texts = [text.strip() for text in only.split(",") if text.strip()]
    found = [run for run in runs if not texts or any(text in run.name for text in texts)]
    if not found:
        raise ValueError(f"--only: no run has {only!r} in its name, such as {runs[0].name}")
    return found


def run_folder(folder: Path, run: PilotRun) -> Path:
    """Return the folder of one run."""
    return folder / "runs" / run.name


def step(run: PilotRun, options: StepOptions) -> Stepped:
    """Bring one run as far as it comes without an answer from outside."""
    try:
        plan = plan_of(run, options)
        if options.verdicts is not None:
            with SqliteStore(plan.folder) as store:
                store.begin(plan.spec, plan.problem)
                take_in(store, plan.problem, options.verdicts)
        result = api.run_plan(plan)
    except HotloopError as exc:
        return Stepped(run=run, state="failed", message=f"{type(exc).__name__}: {exc}")
    except Exception as exc:  # noqa: BLE001  one run's bug must not hold up the other 71
        traceback.print_exc()
        return Stepped(run=run, state="failed", message=f"a bug: {type(exc).__name__}: {exc}")
    return Stepped(run=run, state=_state(result), message=result.detail or "")


Change = Callable[[Sequence[Item], RunReader], Sequence[Item]]


def bundle_all(
    folder: Path,
    runs: Sequence[PilotRun],
    out: Path,
    *,
    change: Change = lambda items, reader: items,
) -> int:
    """Write what all runs want judged into one bundle; return how many items it has.

    As `hotloop bundle` does: a problem stands in it once, however many runs are about it, with the
    audit of an earlier load, and what no prompt will show is not asked for.

    Args:
        folder: of all runs.
        runs: those to look at.
        out: the bundle.
        change: what a run's items become.
    """
    problems: dict[str, Problem] = {}
    items: dict[Key, Item] = {}
    audits: dict[str, Audit] = {}
    for reader in open_runs(folder, runs):
        with reader:
            found = change(_pending(reader), reader)
            if found:
                problem = reader.problem()
                problems[problem.id] = problem
                if (audit := last_audit(reader)) is not None:
                    audits[problem.id] = audit
            for item in found:  # of two that ask for the same final, the full one is judged
                if not item.short or item.key not in items:
                    items[item.key] = item
    if items:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_bundle(out, Bundle(problems=problems, items=tuple(items.values()), audits=audits))
    return len(items)


def _pending(reader: RunReader) -> list[Item]:
    spec = reader.spec()
    wants_counters = shows_counters(spec) and has_calls_left(spec, reader.attempts())
    return pending_items(reader, wants_counters=wants_counters)


def open_runs(folder: Path, runs: Iterable[PilotRun]) -> Iterable[RunReader]:
    """Yield a reader of each run that has begun; the caller closes it."""
    for run in runs:
        path = run_folder(folder, run)
        if (path / JOURNAL_FILE).is_file():
            yield RunReader(path)


def table(stepped: Sequence[Stepped]) -> str:
    """Return how many runs of each arm stand where."""
    states = ("reply", "verdict", "done", "failed")
    lines = [f"{'arm':<12}" + "".join(f"{state:>9}" for state in states)]
    for arm in ARMS:
        counts = Counter(s.state for s in stepped if s.run.arm == arm)
        if counts:
            lines.append(f"{arm.name:<12}" + "".join(f"{counts[state]:>9}" for state in states))
    total = Counter(s.state for s in stepped)
    lines.append(f"{'all':<12}" + "".join(f"{total[state]:>9}" for state in states))
    lines += [f"{s.run.name}: {s.message}"[:200] for s in stepped if s.state == "failed"]
    return "\n".join(lines)


def plan_of(run: PilotRun, options: StepOptions) -> SearchPlan:
    """Return how one run searches, and in which folder."""
    problem = run.problem
    is_attention = problem.level == 0
    wanted: SearchOptions = {
        "model": f"dir:{options.folder / 'answers'}",
        "no_wait": True,
        "judge": "bundle",
        "device": "cuda",
        "budget": BUDGET,
        "language": run.language,
        "strategy": run.arm.strategy,
        "sees": run.arm.sees,
        "max_candidates": options.max_candidates,
        "parallel": options.max_candidates,
        "out": run_folder(options.folder, run),
        "settings": problem.settings,
        "data": None if is_attention else options.data,
    }
    file = ROOT / "examples" / f"{problem.name}.py"
    return plan_search(str(file) if is_attention else problem.name, **wanted)


def _state(result: RunResult) -> str:
    if result.reason is not StopReason.WAITING:
        return "done"
    return "reply" if any(name.endswith(".prompt.md") for name in result.waiting) else "verdict"
