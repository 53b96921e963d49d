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
from hotloop.plan import COMMAND, SearchPlan, plan_search
from hotloop.problems import KernelBenchEntry
from hotloop.problems.classify import parse_python
from hotloop.problems.precision import with_precision
from hotloop.problems.settings import check_settings
from hotloop.retrieval.shelf import EXAMPLES, HELD_OUT
from hotloop.search_options import SearchOptions
from hotloop.suite.command import bench_command, given_of
from hotloop.suite.folder import DEFAULT_PRECISION, PRECISION, Member, SuiteRecord, Trouble
from hotloop.suite.starting import (
    Start,
    Starts,
    begun_from,
    check_only_starts,
    check_other_folder,
    options_from,
    read_starts,
)

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
    """Problems that cannot be planned, by name: their file does not parse, a setting does not fit
    it, or there is no kernel to verify where nothing else is asked for."""
    starts: Starts | None = None
    """What problems begin from, where they begin from the kernels of a suite."""

    @property
    def without_start(self) -> tuple[str, ...]:
        """Names of the problems for which the suite to begin from has no verified kernel."""
        if self.starts is None:
            return ()
        return tuple(m.name for m in self.record.problems if m.name not in self.starts.kernels)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteExtras:
    """What concerns all runs of a suite and is no option of a single one."""

    held_out: frozenset[str] = frozenset()
    """Names of problems between which and the others no example may pass."""
    short_final: bool = True
    """Whether the final tier is the short one: a suite verifies hundreds of kernels."""
    shared_budget: bool = False
    """Whether time that problems leave over goes to others; here it is only written down."""


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
        options: those of `hotloop.optimize`, for every run; `out` is not among them. `start` may
            be the folder of a suite, whose best verified kernels problems then begin from.
        extra: what else concerns all runs.

    Raises:
        ConfigError: an option is wrong, or no problem can be run.
        DeviceLost: `cuda` was asked for and there is no GPU.
        SandboxUnavailable: this machine cannot give the isolation asked for.
        StoreError: a journal of the suite to begin from is damaged.
    """
    source, names = _source(options), {entry.name for entry in entries}
    extra = extra or SuiteExtras()
    starts = None if source is None else read_starts(source, names, begun_from(out))
    plan = _plan(entries, out, options, extra=extra, starts=starts)
    if source is not None and out is None and (begun := begun_from(plan.folder)):
        starts = read_starts(source, names, begun)
        plan = _plan(entries, out, options, extra=extra, starts=starts)
    if starts is not None:
        check_other_folder(starts, plan.folder)
    if options.get("start_only"):
        check_only_starts(plan.folder)
    return plan


def _source(options: SearchOptions) -> Path | None:
    """Return the folder of the suite to begin from; None where `start` names none.

    Raises:
        ConfigError: `start` names nothing.
    """
    start = options.get("start")
    if not isinstance(start, str | Path):
        return None
    if not Path(start).exists():
        raise ConfigError(
            f"--start {start}: expected a kernel's file or the folder of a suite, there is neither"
        )
    return Path(start) if Path(start).is_dir() else None


def _plan(
    entries: Sequence[KernelBenchEntry],
    out: Path | None,
    options: SearchOptions,
    *,
    extra: SuiteExtras,
    starts: Starts | None,
) -> SuitePlan:
    """Plan a suite from what its problems begin from.

    Raises:
        ConfigError: an option is wrong, or no problem can be run.
    """
    if starts is not None:
        options = options_from(starts, options)
    members = {entry.name: _member(entry, options) for entry in entries}
    plans, refused, first = _plans(entries, options, starts)
    if not plans:
        raise first or ConfigError("expected at least one problem, got none")
    plans = {n: _with_extras(plan, extra) for n, plan in plans.items()}
    # What a run is fixed by may depend on whether it begins from a kernel.
    any_plan = next((p for p in plans.values() if p.start is not None), next(iter(plans.values())))
    identity = _identity(any_plan, options)
    if starts is not None:
        identity |= {"start": starts.mark, "language": starts.languages(options.get("language"))}
    record = SuiteRecord(
        suite=KERNELBENCH,
        problems=tuple(members.values()),
        options=identity,
        limits={**to_json(any_plan.spec.budget), "parallel": any_plan.config.parallel},
        troubles=refused,
        starts={} if starts is None else starts.begun,
        start_only=bool(options.get("start_only")),
        given=given_of(options, full_final=not extra.short_final, shared=extra.shared_budget),
    )
    # The languages of a start are what its suite found so far, and no part of the name.
    named = {n: v for n, v in identity.items() if starts is None or n != "language"}
    key = digest([[m.problem_id for m in members.values()], named])[:8]
    folder = out if out is not None else Path("runs") / f"{KERNELBENCH}-{key}"
    command = bench_command(record, folder)
    jobs = [
        Job(member=members[n], plan=_at(p, folder / members[n].folder, command))
        for n, p in plans.items()
    ]
    return SuitePlan(folder=folder, record=record, jobs=tuple(jobs), refused=refused, starts=starts)


def _plans(
    entries: Sequence[KernelBenchEntry], options: SearchOptions, starts: Starts | None
) -> tuple[dict[str, SearchPlan], dict[str, Trouble], ConfigError | None]:
    """Return the plans, what could not be planned, and the first reason why.

    Looking at the machine and the options takes a third of a second: that is done once, and once
    more for each language of the kernels that problems begin from.
    """
    plans: dict[str, SearchPlan] = {}
    refused: dict[str, Trouble] = {}
    first: ConfigError | None = None
    like: dict[str | None, SearchPlan] = {}
    replay: ReplayModel | None = None
    for entry in entries:
        try:
            problem = _load(entry, options)
            start = None if starts is None else starts.of(entry.name, options)
            language = None if start is None else start.kernel.language
            known = like.get(language)
            if known is not None:
                if replay is not None:
                    replay.check_problem(problem.id)
                plans[entry.name] = _with_problem(known, problem, start)
                continue
            given = options
            if starts is not None:
                given = {**options, "start": None if start is None else start.kernel}
            plan = like[language] = plan_search(problem, **given)
            plans[entry.name] = _with_problem(plan, problem, start)
            is_asked = not plan.start_only and plan.model.kind is SpecKind.REPLAY
            if is_asked and plan.model.path is not None:
                replay = replay or ReplayModel(plan.model.path)
        except ConfigError as exc:
            first = first or exc
            refused[entry.name] = trouble_of(exc)
    return plans, refused, first


def _load(entry: KernelBenchEntry, options: SearchOptions) -> Problem:
    """Return a problem with its settings, as `load_problem_spec` does for its name."""
    problem = entry.problem()
    check_settings(options.get("settings") or {}, parse_python(problem.source, entry.name))
    return _asked(problem, options)


def _asked(problem: Problem, options: SearchOptions) -> Problem:
    """Return a problem with the settings and by the precision that were asked for."""
    with_settings = replace(problem, settings=dict(options.get("settings") or {}))
    return with_precision(with_settings, options.get("precision"))


def _with_problem(plan: SearchPlan, problem: Problem, start: Start | None) -> SearchPlan:
    """Return the same search on another problem of the same policy, from a kernel of its own."""
    spec = replace(plan.spec, problem_id=problem.id, problem_name=problem.name)
    plan = replace(plan, problem=problem, argument=problem.name, spec=spec)
    if start is None:
        return plan
    spec = replace(spec, options={**spec.options, "start": start.kernel.id})
    return replace(plan, spec=spec, start=start.kernel, start_argument=start.path)


def _with_extras(plan: SearchPlan, extra: SuiteExtras) -> SearchPlan:
    """Return a plan whose run knows what concerns all runs of its suite."""
    # A run of a suite goes on by the suite's command line.
    options = {n: value for n, value in plan.spec.options.items() if n != COMMAND}
    options[SHORT_FINAL] = extra.short_final
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


def _member(entry: KernelBenchEntry, options: SearchOptions) -> Member:
    return Member(
        name=entry.name,
        level=entry.level,
        number=entry.problem_id,
        title=entry.title,
        problem_id=_asked(entry.problem(), options).id,
    )


def _identity(plan: SearchPlan, options: SearchOptions) -> dict[str, Any]:
    """Return what makes it another suite when it changes: what fixes a run, see `RunSpec`."""
    spec = plan.spec
    fixed = {name: getattr(spec, name) for name in _FIXED}
    found = fixed | {n: spec.options.get(n) for n in _FIXED_OPTIONS}
    found |= {n: spec.options[n] for n in _WHERE_GIVEN if n in spec.options}
    precision = plan.problem.policy.precision
    found |= {PRECISION: precision} if precision != DEFAULT_PRECISION else {}
    return found | {"settings": dict(options.get("settings") or {})}


def _at(plan: SearchPlan, folder: Path, command: str) -> SearchPlan:
    """Return a plan whose run lies in the suite; the suite takes verdicts in itself."""
    config = plan.config.model_copy(update={"out": folder})
    return replace(plan, config=config, verdicts=None, suite_command=command)
