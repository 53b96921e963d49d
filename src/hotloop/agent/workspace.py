"""The folder that an agent may name files in."""

from __future__ import annotations

from pathlib import Path

from hotloop.core.problem import Problem
from hotloop.errors import ConfigError
from hotloop.problems import load_problem_spec, parse_settings
from hotloop.problems.kernelbench import is_kernelbench_name

MAX_PATH_CHARS = 4096


class Workspace:
    """Resolves what an agent names; whatever lies outside, also behind a link, is refused."""

    def __init__(self, root: Path, *, device: str, data: str | None = None) -> None:
        """Take a folder.

        Args:
            root: it and all below it may be named.
            device: `cuda` or `cpu`: where problems will be judged.
            data: the KernelBench data set, for problems named `kernelbench/LEVEL/ID`.

        Raises:
            ConfigError: there is no such folder.
        """
        if not root.is_dir():
            raise ConfigError(f"--root {root}: there is no such folder; name the one to work in")
        self.root = root.resolve()
        self.device = device
        self.data = data

    def inside(self, path: str) -> Path:
        """Return a path below the root.

        Raises:
            ConfigError: it lies outside, or is none.
        """
        if not path or len(path) > MAX_PATH_CHARS or "\0" in path:
            raise ConfigError(f"expected a path below {self.root}, got {path[:80]!r}")
        found = (self.root / path).resolve()
        if not found.is_relative_to(self.root):
            raise ConfigError(
                f"{path} lies outside of the workspace {self.root}; copy it into the workspace, or "
                "start the server with another --root"
            )
        return found

    def told(self, path: Path) -> str:
        """Return a path as the agent would name it."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)

    def problem(self, spec: str, settings: str = "", precision: str | None = None) -> Problem:
        """Load a problem file below the root, or one named `kernelbench/LEVEL/ID`.

        Args:
            spec: path or name.
            settings: `N=128,DTYPE=float16`: module-level constants to replace.
            precision: as `--precision` takes it; empty or None: the problem's own.

        Raises:
            ConfigError: there is none, it lies outside, a setting does not fit it, or there is no
                such precision.
        """
        where = spec if is_kernelbench_name(spec) else self.inside(spec)
        chosen = parse_settings(settings)
        return load_problem_spec(
            where,
            device=self.device,
            data=self.data,
            settings=chosen,
            precision=precision or None,
        )
