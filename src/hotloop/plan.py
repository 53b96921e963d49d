"""What a search will do, resolved from a user's options before anything is started.

Every complaint about an option or a problem file is raised here, so that a bad command line leaves
no folder and no process behind. `hotloop.api` runs the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from hotloop.config import DEFAULT_CALLS, DEFAULT_LANES, DEFAULT_MAX_USD, Settings, resolve
from hotloop.core.attempt import RunSpec
from hotloop.core.candidate import Candidate
from hotloop.core.command_line import argument, number, option_words, quoted
from hotloop.core.problem import Problem
from hotloop.core.record import digest
from hotloop.core.units import parse_duration_s
from hotloop.errors import ConfigError
from hotloop.kernel_file import read_candidate
from hotloop.llm.spec import ModelSpec, SpecKind, parse_spec
from hotloop.plan_checks import (
    MODEL_STRATEGY,
    check_model,
    check_model_options,
    check_strategy,
    find_language,
    only_candidate,
)
from hotloop.problems import load_problem_spec, pin_data
from hotloop.problems.kernelbench import is_kernelbench_name
from hotloop.problems.precision import with_precision
from hotloop.retrieval.shelf import EXAMPLES
from hotloop.search_options import ProblemOptions, SearchOptions
from hotloop.store.sqlite import check_folder
from hotloop.verify import find_device
from hotloop.verify.isolation_choice import choose_tier
from hotloop.verify.ssh import JudgePlace, parse_judge

BUILTIN = "builtin"
MODEL = "model"
COMMAND = "command"
"""Option of a run: the words of the command line that starts it, but for its folder."""
BEST_FOLDER = "best"
DEFAULTS = Settings.model_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPlan:
    """A search with everything resolved and nothing started."""

    problem: Problem
    argument: str
    """The problem as the user named it: a path, or `kernelbench/LEVEL/ID`."""
    data: str | None
    """The KernelBench data set; None when none was given."""
    spec: RunSpec
    config: Settings
    model: ModelSpec
    start: Candidate | None
    start_argument: str | None
    """The starting kernel as the user named it."""
    judge: JudgePlace
    verdicts: Path | None
    wait: bool
    """Whether answers from outside are awaited."""
    closes: bool = False
    """Whether the search ends with what is known."""
    precision: str | None = None
    """The precision policy that was asked for; None: the problem's own."""
    start_only: bool = False
    """Whether the starting kernel is verified and nothing else is tried, so that no model is asked.
    """
    gpu: str | None = None
    """Index or UUID of the GPU for a judge on this machine; None for the first visible one."""
    suite_command: str | None = None
    """The command line of the suite that the run belongs to, and goes on with."""

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.config.out

    def search_command(self) -> str:
        """Return the command line that starts, or goes on with, this search."""
        return self.suite_command or quoted([*self.search_words(), "--out", self.folder])

    def search_words(self) -> list[str]:
        """Return the words of that line but for the run's folder."""
        budget, config = self.spec.budget, self.config
        words = ["hotloop", "optimize", argument(self.argument), *self._shared_options()]
        words += option_words({
            "--budget": None if budget.wall_s is None else f"{number(budget.wall_s)}s",
            "--model": config.model,
            "--language": config.language if config.model is not None else None,
            "--sees": config.sees if config.sees != DEFAULTS["sees"].default else None,
            "--start": self.start_argument,
            "--max-candidates": budget.max_candidates,
            "--max-calls": budget.max_calls,
            "--max-tokens": budget.max_tokens,
            "--max-usd": budget.max_usd,
            "--judge": None if self.judge.is_local else str(self.judge),
            "--strategy": self.spec.strategy,
            "--parallel": config.parallel,
            "--seed": self.spec.seed,
        })  # fmt: skip
        for folder in self.spec.options.get(EXAMPLES) or ():
            words += ["--examples", str(folder)]
        return words if self.wait else [*words, "--no-wait"]

    def verify_command(self, entry: str | None = None) -> str:
        """Return the command line that judges this search's best kernel once more.

        Args:
            entry: the kernel's file in the folder of the best; None: the one that lies there.
        """
        best = self.folder / BEST_FOLDER
        kernel = best / (entry or ("kernel.cu" if (best / "kernel.cu").exists() else "kernel.py"))
        words = ["hotloop", "verify", argument(self.argument), argument(kernel)]
        return quoted([*words, *self._shared_options()])

    def _shared_options(self) -> list[str]:
        tier = self.config.min_isolation
        return option_words({
            "--device": self.spec.device,
            "--set": ",".join(f"{k}={v}" for k, v in self.problem.settings.items()) or None,
            "--precision": self.precision,
            "--data": self.data,
            "--min-isolation": tier if tier != DEFAULTS["min_isolation"].default else None,
        })  # fmt: skip


def plan_search(problem: str | Path | Problem, **options: Unpack[SearchOptions]) -> SearchPlan:
    """Resolve the options of `hotloop.optimize`.

    Raises:
        ConfigError: an option, the problem file or the folder is wrong.
        DeviceLost: `cuda` was asked for and there is no GPU.
        SandboxUnavailable: this machine cannot give the isolation asked for.
    """
    options = {**options, "data": pin_data(options.get("data"))}
    judge = parse_judge(options.get("judge") or "local")
    device = _device(options.get("device") or "auto", judge)
    found = find_problem(problem, device, options)
    model = parse_spec(options.get("model") or BUILTIN)
    start, start_only = options.get("start"), bool(options.get("start_only"))
    if start_only:
        options = {**options, "max_candidates": only_candidate(options)}
    else:
        check_model(model, found)
    kernel = read_candidate(Path(start)) if isinstance(start, str | Path) else start
    language = find_language(options.get("language"), model, kernel, found)
    examples = check_model_options(options, model)
    config = _settings(found, device, options, model=model, start=kernel, language=language)
    identity = _identity(config, kernel, examples)
    if options.get("out") is None:
        config = _with_folder(config, found, identity)
    if judge.is_local:
        choose_tier(config.min_isolation)
    check_folder(config.out)
    check_strategy(config.strategy, model)
    data = options.get("data") if is_kernelbench_name(found.name) else None  # a file has none
    verdicts = options.get("verdicts")
    if verdicts is not None and not judge.is_bundle:
        raise ConfigError("--verdicts: it belongs to a run with --judge bundle; add that")
    plan = SearchPlan(
        problem=found,
        argument=_argument(problem, config.out),
        data=None if data is None else str(data),
        spec=_run_spec(found, config, identity),
        config=config,
        model=model,
        start=kernel,
        start_argument=None if start is None or isinstance(start, Candidate) else str(start),
        judge=judge,
        verdicts=None if verdicts is None else Path(verdicts),
        wait=not options.get("no_wait"),
        closes=bool(options.get("close")),
        precision=options.get("precision"),
        start_only=start_only,
    )
    options_of_run = {**plan.spec.options, COMMAND: plan.search_words()}
    return replace(plan, spec=replace(plan.spec, options=options_of_run))


def _argument(problem: str | Path | Problem, folder: Path) -> str:
    """Return what names a problem on a command line; one without a file has that of its best."""
    if isinstance(problem, Problem) and not is_kernelbench_name(problem.name):
        return str(folder / BEST_FOLDER / "problem.py")
    return problem.name if isinstance(problem, Problem) else str(problem)


def _run_spec(problem: Problem, config: Settings, identity: dict[str, Any]) -> RunSpec:
    return RunSpec(
        problem_id=problem.id,
        problem_name=problem.name,
        generator=BUILTIN if config.model is None else MODEL,
        strategy=config.strategy,
        device=config.device,
        language=config.language,
        budget=config.budget,
        seed=config.seed,
        options={**identity, "parallel": config.parallel},
    )


def _device(request: str, judge: JudgePlace) -> str:
    """Return the device; where the judge is elsewhere, no GPU is looked for here."""
    if judge.is_local:
        return find_device(request)
    if request not in ("auto", "cuda", "cpu"):
        raise ConfigError(f"--device: expected auto, cuda or cpu, got {request!r}")
    return "cpu" if request == "cpu" else "cuda"


def _default_parallel(model: ModelSpec) -> int:
    return DEFAULT_LANES if model.kind is SpecKind.BUILTIN else DEFAULT_CALLS


def _identity(config: Settings, start: Candidate | None, examples: Sequence[str]) -> dict[str, Any]:
    """Return the options that make it another search when they change."""
    if config.model is None and start is None:
        return {}
    found: dict[str, Any] = {"sees": config.sees}
    found |= {"model": config.model} if config.model else {}
    found |= {EXAMPLES: list(examples)} if examples else {}
    return found | ({"start": start.id} if start is not None else {})


def find_problem(problem: str | Path | Problem, device: str, options: ProblemOptions) -> Problem:
    """Return a loaded problem, else load it from its path or name; by the precision asked for.

    Raises:
        ConfigError: the file is missing, states no problem, a setting does not fit it, or there is
            no such precision.
    """
    precision = options.get("precision")
    if isinstance(problem, Problem):
        return with_precision(problem, precision)
    return load_problem_spec(
        problem,
        device=device,
        data=options.get("data"),
        settings=options.get("settings"),
        precision=precision,
    )


def _settings(
    problem: Problem,
    device: str,
    options: SearchOptions,
    *,
    model: ModelSpec,
    start: Candidate | None,
    language: str | None,
) -> Settings:
    """Check the options; those that were not given, or are None, take their defaults."""
    has_model = model.kind is not SpecKind.BUILTIN
    is_paid = model.kind is SpecKind.ENDPOINT
    given = {
        "device": device,
        "out": options.get("out") or Path(),
        "budget_s": _seconds(options.get("budget")),
        "model": options.get("model") if has_model else None,
        "sees": options.get("sees"),
        "language": language,
        "max_candidates": options.get("max_candidates"),
        "max_calls": options.get("max_calls"),
        "max_tokens": options.get("max_tokens"),
        "max_usd": _or(options.get("max_usd"), DEFAULT_MAX_USD if is_paid else None),
        "strategy": options.get("strategy") or (MODEL_STRATEGY if has_model else None),
        "seed": options.get("seed"),
        "min_isolation": options.get("min_isolation"),
        "parallel": _or(options.get("parallel"), _default_parallel(model)),
    }
    return resolve(given, has_gpu=device == "cuda")


def _with_folder(config: Settings, problem: Problem, identity: dict[str, Any]) -> Settings:
    """Return the settings with the same folder for the same search, so that its command goes on."""
    generator = BUILTIN if config.model is None else MODEL
    key = [problem.id, generator, config.strategy, config.device, config.language, config.seed]
    name = f"{problem.name.replace('/', '-')}-{digest([*key, identity] if identity else key)[:8]}"
    return config.model_copy(update={"out": Path("runs") / name})


def _or(given: Any, default: Any) -> Any:
    return default if given is None else given  # 0 is an answer, and a wrong one: it is refused


def _seconds(budget: str | float | None) -> float | None:
    if budget is None:
        return None
    try:
        return parse_duration_s(str(budget))
    except ValueError as exc:
        raise ConfigError(f"budget: {exc}") from exc
