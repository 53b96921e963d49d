"""What a search will do, resolved from a user's options before anything is started.

Every complaint about an option or a problem file is raised here, so that a bad command line leaves
no folder and no process behind. `hotloop.api` runs the plan.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, Unpack

from hotloop import registry
from hotloop.config import Settings, resolve
from hotloop.core.attempt import RunSpec
from hotloop.core.problem import Problem
from hotloop.core.record import digest
from hotloop.core.units import parse_duration_s
from hotloop.errors import ConfigError
from hotloop.problems import load_problem_spec
from hotloop.store.sqlite import check_folder
from hotloop.verify import find_device
from hotloop.verify.local import choose_tier

BUILTIN = "builtin"
BEST_FOLDER = "best"


class ProblemOptions(TypedDict, total=False):
    """What changes the problem; every option may be left out or None."""

    settings: Mapping[str, int | float | str] | None
    """Module-level constants of the problem file to replace."""
    data: str | Path | None
    """The KernelBench data set, for a problem named `kernelbench/LEVEL/ID`."""


class SearchOptions(ProblemOptions, total=False):
    """What changes the search; every option may be left out or None. Defaults: `hotloop.config`."""

    budget: str | float | None
    """Seconds, or text like `45s`, `15m`, `1h30m`; set-up is not counted."""
    device: str | None
    """`auto`, `cuda` or `cpu`. On `cpu` kernels are checked and compiled, never timed."""
    out: str | Path | None
    """The run's folder; by default `runs/NAME-HASH`, the same for the same arguments."""
    max_candidates: int | None
    """Ends the search earlier."""
    strategy: str | None
    """A name in the entry points `hotloop.strategies`, or `pkg.mod:Attr`."""
    seed: int | None
    """Of the strategy."""
    min_isolation: str | None
    """`T0`, `T1` or `T2`: the cage that candidates run in."""
    parallel: int | None
    """Builds that may run beside a verification."""


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

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.config.out

    def search_command(self) -> str:
        """Return the command line that starts, or goes on with, this search."""
        budget = self.spec.budget
        words = ["hotloop", "optimize", self.argument, *self._shared_options()]
        words += ["--budget", f"{budget.wall_s:g}s"] if budget.wall_s is not None else []
        if budget.max_candidates is not None:
            words += ["--max-candidates", str(budget.max_candidates)]
        words += ["--strategy", self.spec.strategy, "--seed", str(self.spec.seed)]
        return shlex.join([*words, "--out", str(self.folder)])

    def verify_command(self) -> str:
        """Return the command line that judges this search's best kernel once more."""
        kernel = self.folder / BEST_FOLDER / "kernel.py"
        words = ["hotloop", "verify", self.argument, str(kernel)]
        return shlex.join([*words, *self._shared_options()])

    def _shared_options(self) -> list[str]:
        words = ["--device", self.spec.device]
        if self.problem.settings:
            words += ["--set", ",".join(f"{k}={v}" for k, v in self.problem.settings.items())]
        if self.data is not None:
            words += ["--data", self.data]
        if self.config.min_isolation != Settings.model_fields["min_isolation"].default:
            words += ["--min-isolation", self.config.min_isolation]
        return words


def plan_search(problem: str | Path | Problem, **options: Unpack[SearchOptions]) -> SearchPlan:
    """Resolve the options of `hotloop.optimize`.

    Raises:
        ConfigError: an option, the problem file or the folder is wrong.
        DeviceLost: `cuda` was asked for and there is no GPU.
        SandboxUnavailable: this machine cannot give the isolation asked for.
    """
    device = find_device(options.get("device") or "auto")
    found = find_problem(problem, device, options)
    config = _settings(found, device, options)
    choose_tier(config.min_isolation)
    check_folder(config.out)
    registry.load(registry.STRATEGIES, config.strategy)  # an unknown name is found before any work
    data = options.get("data")
    return SearchPlan(
        problem=found,
        argument=found.name if isinstance(problem, Problem) else str(problem),
        data=None if data is None else str(data),
        spec=RunSpec(
            problem_id=found.id,
            problem_name=found.name,
            generator=BUILTIN,
            strategy=config.strategy,
            device=device,
            language=config.language,
            budget=config.budget,
            seed=config.seed,
        ),
        config=config,
    )


def find_problem(problem: str | Path | Problem, device: str, options: ProblemOptions) -> Problem:
    """Return a loaded problem as it is, else load it from its path or name.

    Raises:
        ConfigError: the file is missing, states no problem, or a setting does not fit it.
    """
    if isinstance(problem, Problem):
        return problem
    return load_problem_spec(
        problem, device=device, data=options.get("data"), settings=options.get("settings")
    )


def _settings(problem: Problem, device: str, options: SearchOptions) -> Settings:
    """Check the options; those that were not given, or are None, take their defaults."""
    given = {
        "device": device,
        "out": options.get("out") or Path(),
        "budget_s": _seconds(options.get("budget")),
        "max_candidates": options.get("max_candidates"),
        "strategy": options.get("strategy"),
        "seed": options.get("seed"),
        "min_isolation": options.get("min_isolation"),
        "parallel": options.get("parallel"),
    }
    settings = resolve(given, has_gpu=device == "cuda")
    if options.get("out") is not None:
        return settings
    # The same folder for the same search, so that the same command goes on.
    key = [problem.id, BUILTIN, settings.strategy, device, settings.language, settings.seed]
    name = f"{problem.name.replace('/', '-')}-{digest(key)[:8]}"
    return settings.model_copy(update={"out": Path("runs") / name})


def _seconds(budget: str | float | None) -> float | None:
    if budget is None:
        return None
    try:
        return parse_duration_s(str(budget))
    except ValueError as exc:
        raise ConfigError(f"budget: {exc}") from exc
