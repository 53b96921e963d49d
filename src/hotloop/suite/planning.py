"""What a suite will do, resolved before anything is started: one plan for each problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hotloop.core.attempt import SHORT_FINAL
from hotloop.core.problem import Problem
from hotloop.core.record import digest, to_json
from hotloop.errors import ConfigError, ProblemError
from hotloop.llm.replay import ReplayModel
from hotloop.llm.spec import SpecKind
from hotloop.plan import SearchPlan, plan_search
from hotloop.problems import KernelBenchEntry
from hotloop.problems.classify import parse_python
from hotloop.problems.constants import Constant
from hotloop.problems.settings import check_settings
from hotloop.retrieval.shelf import EXAMPLES, HELD_OUT
from hotloop.search_options import SearchOptions
from hotloop.suite.folder import Member, SuiteRecord, Trouble

KERNELBENCH = "kernelbench"
MESSAGE_CHARACTERS = 2000
_FIXED = ("device", "generator", "strategy", "language", "seed")
_FIXED_OPTIONS = ("model", "sees", "start")
_WHERE_GIVEN = (EXAMPLES, HELD_OUT)
"""Options that stand in the record only where they were given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One problem that can be run."""

    member: Member
    plan: SearchPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class SuitePlan:
    """A suite with everything resolved and nothing started."""

    folder: Path
    record: SuiteRecord
    jobs: tuple[Job, ...]
    refused: Mapping[str, Trouble]
    """Problems that cannot be planned, by name: their file does not parse, or a setting does not
    fit it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteExtras:
    """What concerns all runs of a suite and is no option of a single one."""

    held_out: frozenset[str] = frozenset()
    """Names of problems between which and the others no example may pass."""
    short_final: bool = True
    """Whether the final tier is the short one: a suite verifies hundreds of kernels."""


def plan_suite(
    entries: Sequence[KernelBenchEntry],
    out: Path | None,
    options: SearchOptions,
    extra: SuiteExtras | None = None,
) -> SuitePlan:
    """Plan the run of each problem.

    Args:
        entries: the problems, at least one.
        out: the suite's folder; None for `runs/kernelbench-HASH`, the same for the same suite.
        options: those of `hotloop.optimize`, for every run; `out` is not among them.
        extra: what else concerns all runs.

    Raises:
        ConfigError: an option is wrong, or no problem can be run.
        DeviceLost: `cuda` was asked for and there is no GPU.
        SandboxUnavailable: this machine cannot give the isolation asked for.
    """
    settings = dict(options.get("settings") or {})
    members = {entry.name: _member(entry, settings) for entry in entries}
    plans, refused, first = _plans(entries, settings, options)
    if not plans:
        raise first or ConfigError("expected at least one problem, got none")
    extra = extra or SuiteExtras()
    plans = {n: _with_extras(plan, extra) for n, plan in plans.items()}
    any_plan = next(iter(plans.values()))
    identity = _identity(any_plan, settings)
    record = SuiteRecord(
        suite=KERNELBENCH,
        problems=tuple(members.values()),
        options=identity,
        limits={**to_json(any_plan.spec.budget), "parallel": any_plan.config.parallel},
        troubles=refused,
    )
    key = digest([[m.problem_id for m in members.values()], identity])[:8]
    folder = out if out is not None else Path("runs") / f"{KERNELBENCH}-{key}"
    jobs = [Job(member=members[n], plan=_at(p, folder, members[n])) for n, p in plans.items()]
    return SuitePlan(folder=folder, record=record, jobs=tuple(jobs), refused=refused)


def _plans(
    entries: Sequence[KernelBenchEntry], settings: Mapping[str, Constant], options: SearchOptions
) -> tuple[dict[str, SearchPlan], dict[str, Trouble], ConfigError | None]:
    """Return the plans, what could not be planned, and the first reason why.

    Looking at the machine and the options takes a third of a second: that is done once.
    """
    plans: dict[str, SearchPlan] = {}
    refused: dict[str, Trouble] = {}
    first: ConfigError | None = None
    like: SearchPlan | None = None
    replay: ReplayModel | None = None
    for entry in entries:
        try:
            problem = _load(entry, settings)
            if like is None:
                like = plans[entry.name] = plan_search(problem, **options)
                if like.model.kind is SpecKind.REPLAY and like.model.path is not None:
                    replay = ReplayModel(like.model.path)
                continue
            if replay is not None:
                replay.check_problem(problem.id)
            plans[entry.name] = _with_problem(like, problem)
        except ConfigError as exc:
            first = first or exc
            refused[entry.name] = trouble_of(exc)
    return plans, refused, first


def _load(entry: KernelBenchEntry, settings: Mapping[str, Constant]) -> Problem:
    """Return a problem with its settings, as `load_problem_spec` does for its name."""
    problem = entry.problem()
    check_settings(settings, parse_python(problem.source, entry.name))
    return replace(problem, settings=settings)


def _with_problem(plan: SearchPlan, problem: Problem) -> SearchPlan:
    """Return the same search on another problem of the same policy."""
    spec = replace(plan.spec, problem_id=problem.id, problem_name=problem.name)
    return replace(plan, problem=problem, argument=problem.name, spec=spec)


def _with_extras(plan: SearchPlan, extra: SuiteExtras) -> SearchPlan:
    """Return a plan whose run knows what concerns all runs of its suite."""
    options = {**plan.spec.options, SHORT_FINAL: extra.short_final}
    if extra.held_out:
        options[HELD_OUT] = sorted(extra.held_out)
    return replace(plan, spec=replace(plan.spec, options=options))


def with_wall(job: Job, wall_s: float) -> Job:
    """Return a job whose run may spend so many seconds; its other limits stay."""
    plan = job.plan
    config = plan.config.model_copy(update={"budget_s": wall_s})
    budget = replace(plan.spec.budget, wall_s=wall_s)
    spec = replace(plan.spec, budget=budget)
    return replace(job, plan=replace(plan, config=config, spec=spec))


def trouble_of(error: Exception) -> Trouble:
    """Return what to write down of an error that ended a run."""
    # By type: the problem's and the user's faults are skipped, all else is tried again.
    is_problem = isinstance(error, ProblemError)
    return Trouble(
        kind=type(error).__name__,
        message=" ".join(str(error).split())[:MESSAGE_CHARACTERS],
        skipped=is_problem or isinstance(error, ConfigError),
        again=not is_problem,
    )


def _member(entry: KernelBenchEntry, settings: Mapping[str, Constant]) -> Member:
    return Member(
        name=entry.name,
        level=entry.level,
        number=entry.problem_id,
        title=entry.title,
        problem_id=replace(entry.problem(), settings=settings).id,
    )


def _identity(plan: SearchPlan, settings: Mapping[str, Constant]) -> dict[str, Any]:
    """Return what makes it another suite when it changes: what fixes a run, see `RunSpec`."""
    spec = plan.spec
    fixed = {name: getattr(spec, name) for name in _FIXED}
    found = fixed | {n: spec.options.get(n) for n in _FIXED_OPTIONS}
    found |= {n: spec.options[n] for n in _WHERE_GIVEN if n in spec.options}
    return found | {"settings": dict(settings)}


def _at(plan: SearchPlan, folder: Path, member: Member) -> SearchPlan:
    """Return a plan whose run lies in the suite; the suite takes verdicts in itself."""
    config = plan.config.model_copy(update={"out": folder / member.folder})
    return replace(plan, config=config, verdicts=None)
