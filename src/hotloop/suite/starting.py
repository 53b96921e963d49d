"""`bench --start SUITE`: each problem begins from the best verified kernel of the same one there.

"Verified" is what a suite calls passed: PASSED at the highest tier of the device where that suite
ran. Kernels come from the journals, with the values of their tunables. They are verified again
before anything else, so nothing is believed of the suite that they come from.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from hotloop.core.candidate import Candidate
from hotloop.core.record import digest
from hotloop.errors import ConfigError, ForeignRun
from hotloop.plan import BEST_FOLDER, BUILTIN
from hotloop.search_options import SearchOptions
from hotloop.store.reader import RunReader
from hotloop.suite.folder import Member, read_suite
from hotloop.suite.standing import read_standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What one problem begins from."""

    kernel: Candidate
    path: str | None
    """The kernel as a file, for whoever repeats the run; None where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Starts:
    """What the problems of a suite begin from."""

    folder: Path
    """The suite that the kernels come from."""
    kernels: Mapping[str, Start]
    """By the problem's name, where there is one; at least one."""
    generator: str
    """Who wrote them: `builtin` or `model`."""
    model: str | None
    """The model's spec; None for `builtin`."""

    @property
    def mark(self) -> str:
        """What makes it another suite when it changes: `87 kernels of model, 3fa9c1d2`."""
        ids = sorted((name, start.kernel.id) for name, start in self.kernels.items())
        return f"{len(ids)} kernels of {self.generator}, {digest(ids)[:8]}"

    def of(self, name: str, options: SearchOptions) -> Start | None:
        """Return what a problem begins from; None: from nothing.

        Raises:
            ConfigError: there is none, and nothing but these kernels is to be verified.
        """
        if name not in self.kernels and options.get("start_only"):
            raise ConfigError(f"--start-only: {self.folder} has no verified kernel of {name}")
        return self.kernels.get(name)


def read_starts(folder: Path, names: Collection[str]) -> Starts:
    """Return the best verified kernels of the suite in a folder.

    Args:
        folder: the suite's.
        names: the problems that kernels are wanted for.

    Raises:
        ConfigError: it holds no suite, or no verified kernel of these problems.
        StoreError: a journal or a kernel in it cannot be read.
    """
    try:
        record = read_suite(folder)
    except ForeignRun as exc:
        raise ConfigError(
            f"--start: expected a kernel's file or the folder of a suite: {exc}"
        ) from exc
    found = {m.name: _best(folder, m) for m in record.problems if m.name in names}
    kernels = {name: start for name, start in found.items() if start is not None}
    if not kernels:
        raise ConfigError(
            f"--start {folder}: expected verified kernels of {len(names)} problem(s), the suite "
            "has none; finish it, choose other problems, or leave --start out"
        )
    generator, model = record.options.get("generator"), record.options.get("model")
    return Starts(
        folder=folder,
        kernels=kernels,
        generator=str(generator),
        model=None if generator == BUILTIN or model is None else str(model),
    )


def options_from(starts: Starts, options: SearchOptions) -> SearchOptions:
    """Return the options of a suite that begins from another one's kernels.

    Where nothing else is tried, who wrote them is who wrote them there.

    Raises:
        ConfigError: a model wrote them, and the built-in generator would go on.
    """
    if options.get("start_only") and options.get("model") is None:
        return {**options, "model": starts.model}
    if starts.model is not None and options.get("model") in (None, BUILTIN):
        raise ConfigError(
            f"--start {starts.folder}: a model wrote its kernels; name the --model that goes on "
            f"with them (there it was {starts.model}), or only verify them by --start-only"
        )
    return options


def check_other_folder(starts: Starts, folder: Path) -> None:
    """Refuse a suite that would begin from its own kernels.

    Raises:
        ConfigError: both are one folder.
    """
    if starts.folder.resolve() == folder.resolve():
        raise ConfigError(
            f"--start {starts.folder}: it is this suite's own folder; leave --start out to go on "
            "with it, or name another --out"
        )


def _best(folder: Path, member: Member) -> Start | None:
    run = folder / member.folder
    standing = read_standing(run, member, None)
    result = standing.result
    if result is None or not result.passed:
        return None
    best = next(a for a in result.attempts if a.id == result.best_attempt_id)
    assert best.candidate_id is not None, "an attempt that passed has a candidate"
    with RunReader(run) as reader:
        kernel = reader.candidate(best.candidate_id)
    file = run / BEST_FOLDER / kernel.entry
    return Start(kernel=kernel, path=str(file) if file.is_file() else None)
