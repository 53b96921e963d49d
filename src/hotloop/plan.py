"""What a search will do, resolved from a user's options before anything is started.

Every complaint about an option or a problem file is raised here, so that a bad command line leaves
no folder and no process behind. `hotloop.api` runs the plan.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hotloop import registry
from hotloop.core.attempt import Budget, RunSpec
from hotloop.core.problem import Problem
from hotloop.core.record import digest
from hotloop.core.units import parse_duration_s
from hotloop.errors import ConfigError
from hotloop.problems import load_problem_spec
from hotloop.verify import find_device
from hotloop.verify.local import choose_tier

BUILTIN = "builtin"
BEST_FOLDER = "best"

Settings = Mapping[str, int | float | str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPlan:
    """A search with everything resolved and nothing started."""

    problem: Problem
    argument: str
    """The problem as the user named it: a path, or `kernelbench/LEVEL/ID`."""
    data: str | None
    """The KernelBench data set; None when none was given."""
    spec: RunSpec
    folder: Path
    min_isolation: str

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
        return words


def plan_search(
    problem: str | Path | Problem,
    *,
    budget: str | float = "15m",
    device: str = "auto",
    out: str | Path | None = None,
    settings: Settings | None = None,
    data: str | Path | None = None,
    max_candidates: int | None = None,
    strategy: str = "tune",
    seed: int = 0,
    min_isolation: str = "T1",
) -> SearchPlan:
    """Resolve the options of `hotloop.optimize`; see there.

    Raises:
        ConfigError: an option or the problem file is wrong.
        DeviceLost: `cuda` was asked for and there is no GPU.
        SandboxUnavailable: this machine cannot give the isolation asked for.
    """
    limits = _budget(budget, max_candidates)
    registry.load("hotloop.strategies", strategy)  # an unknown name is found before any work
    where = find_device(device)
    found = find_problem(problem, device=where, settings=settings, data=data)
    choose_tier(min_isolation)
    spec = RunSpec(
        problem_id=found.id,
        problem_name=found.name,
        generator=BUILTIN,
        strategy=strategy,
        device=where,
        language="triton",
        budget=limits,
        seed=seed,
    )
    return SearchPlan(
        problem=found,
        argument=found.name if isinstance(problem, Problem) else str(problem),
        data=None if data is None else str(data),
        spec=spec,
        folder=_default_folder(spec) if out is None else Path(out),
        min_isolation=min_isolation,
    )


def find_problem(
    problem: str | Path | Problem,
    *,
    device: str,
    settings: Settings | None,
    data: str | Path | None,
) -> Problem:
    """Return a loaded problem as it is, else load it from its path or name.

    Raises:
        ConfigError: the file is missing, states no problem, or a setting does not fit it.
    """
    if isinstance(problem, Problem):
        return problem
    return load_problem_spec(problem, device=device, data=data, settings=settings)


def _budget(budget: str | float, max_candidates: int | None) -> Budget:
    try:
        wall_s = parse_duration_s(str(budget))
    except ValueError as exc:
        raise ConfigError(f"--budget: {exc}") from exc
    if max_candidates is not None and max_candidates < 1:
        raise ConfigError(f"--max-candidates: expected a number from 1, got {max_candidates}")
    return Budget(wall_s=wall_s, max_candidates=max_candidates)


def _default_folder(spec: RunSpec) -> Path:
    """Return the same folder for the same search, so that the same command goes on."""
    key = [spec.problem_id, spec.generator, spec.strategy, spec.device, spec.language, spec.seed]
    return Path("runs") / f"{spec.problem_name.replace('/', '-')}-{digest(key)[:8]}"
