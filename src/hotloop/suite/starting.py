"""`bench --start SUITE`: each problem begins from the best verified kernel of the same one there.

"Verified" is what a suite calls passed: PASSED at the highest tier of the device where that suite
ran. Kernels come from the journals, with the values of their tunables. They are verified again
before anything else, so nothing is believed of the suite that they come from.

Which kernels these are is written down when a suite is begun, by content. It goes on with the same
ones, whatever the suite that they come from finds later.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from hotloop.core.candidate import Candidate
from hotloop.core.record import digest
from hotloop.errors import ConfigError, ForeignRun, StoreError
from hotloop.plan import BEST_FOLDER, BUILTIN
from hotloop.search_options import SearchOptions
from hotloop.store.reader import RunReader
from hotloop.store.sqlite import JOURNAL_FILE
from hotloop.suite.folder import SUITE_FILE, Begun, Member, SuiteRecord, read_suite
from hotloop.suite.origin import is_the_start
from hotloop.suite.standing import State, read_standing

KERNEL_FILE = "a kernel's file"
"""Who wrote what a suite began from where that was one file for all problems."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What one problem begins from."""

    kernel: Candidate
    path: str | None
    """The kernel as a file, for whoever repeats the run; None where there is none."""
    author: str
    """Who wrote it: the model's spec, or `builtin`; may be older than the suite it comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Starts:
    """What the problems of a suite begin from."""

    folder: Path
    """The suite that the kernels come from."""
    kernels: Mapping[str, Start]
    """By the problem's name, where there is one; at least one."""
    generator: str
    """Whose suite it is: `builtin` or `model`."""
    model: str | None
    """The model's spec; None for `builtin`."""
    mark: str
    """Which suite it is, by what was asked of it and not by what it found: `model, 3fa9c1d2`."""

    @property
    def begun(self) -> dict[str, Begun]:
        """What to write down of the kernels, by the problem's name."""
        return {
            name: Begun(candidate_id=start.kernel.id, author=start.author)
            for name, start in self.kernels.items()
        }

    def languages(self, asked: str | None) -> str:
        """Return the languages of a suite that begins from these: `cuda, triton`.

        Args:
            asked: by `--language`; None where nothing was.
        """
        found = {start.kernel.language for start in self.kernels.values()}
        return ", ".join(sorted(found | ({asked} if asked is not None else set())))

    def of(self, name: str, options: SearchOptions) -> Start | None:
        """Return what a problem begins from; None: from nothing.

        Raises:
            ConfigError: there is none, and nothing but these kernels is to be verified.
        """
        if name not in self.kernels and options.get("start_only"):
            raise ConfigError(f"--start-only: {self.folder} has no verified kernel of {name}")
        return self.kernels.get(name)


def begun_from(folder: Path | None) -> Mapping[str, Begun]:
    """Return what the suite in a folder began from; nothing where there is none.

    Raises:
        ForeignRun: its file is damaged.
        StoreError: it cannot be read.
    """
    if folder is None or not (folder / SUITE_FILE).is_file():
        return {}
    return read_suite(folder).starts


def read_starts(folder: Path, names: Collection[str], begun: Mapping[str, Begun]) -> Starts:
    """Return the kernels of the suite in a folder that problems begin from.

    Args:
        folder: the suite's.
        names: the problems that kernels are wanted for.
        begun: those that a suite has begun from; empty: the best verified ones.

    Raises:
        ConfigError: it holds no suite, no verified kernel of these problems, or not those that were
            begun from.
        StoreError: a journal or a kernel in it cannot be read.
    """
    try:
        record = read_suite(folder)
    except ForeignRun as exc:
        raise ConfigError(
            f"--start: expected a kernel's file or the folder of a suite: {exc}"
        ) from exc
    members = {m.name: m for m in record.problems if m.name in names}
    if begun:
        kernels = {
            name: _again(folder, members.get(name), record, one)
            for name, one in begun.items()
            if name in names
        }
    else:
        found = {name: _best(folder, m, record) for name, m in members.items()}
        kernels = {name: start for name, start in found.items() if start is not None}
    if not kernels:
        raise ConfigError(
            f"--start {folder}: expected verified kernels of {len(names)} problem(s), the suite "
            "has none; finish it, choose other problems, or leave --start out"
        )
    generator, model = str(record.options.get("generator")), record.options.get("model")
    key = digest([[m.problem_id for m in record.problems], record.options])[:8]
    return Starts(
        folder=folder,
        kernels=kernels,
        generator=generator,
        model=None if generator == BUILTIN or model is None else str(model),
        mark=f"{generator}, {key}",
    )


def options_from(starts: Starts, options: SearchOptions) -> SearchOptions:
    """Return the options of a suite that begins from another one's kernels.

    Where nothing else is tried, who wrote them is who wrote them there. A model never goes on with
    the built-in generator's: where it finds nothing better, templates would stand in its column.

    Raises:
        ConfigError: they would be counted as another generator's.
    """
    given, whose = options.get("model"), starts.model or BUILTIN
    if options.get("start_only"):
        if given not in (None, whose):
            raise ConfigError(
                f"--start-only: the kernels of {starts.folder} are counted as those of {whose}, "
                f"got --model {given}; leave --model out"
            )
        return {**options, "model": starts.model}
    if starts.model is not None and given in (None, BUILTIN):
        raise ConfigError(
            f"--start {starts.folder}: a model wrote its kernels; name the --model that goes on "
            f"with them (there it was {starts.model}), or only verify them by --start-only"
        )
    if starts.model is None and given not in (None, BUILTIN):
        raise ConfigError(
            f"--start {starts.folder}: the built-in generator wrote its kernels, which would be "
            f"counted as those of {given}; leave --model out, or begin without --start"
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


def check_only_starts(folder: Path) -> None:
    """Refuse to verify starting kernels alone where a search has gone on from them.

    Raises:
        ConfigError: it has.
        ForeignRun: the suite's file is damaged.
        StoreError: it cannot be read.
    """
    if not (folder / SUITE_FILE).is_file():
        return
    stored = read_suite(folder)
    if stored.options.get("start") and not stored.start_only:
        raise ConfigError(
            f"--start-only: {folder} has gone on to search; leave --start-only out, or name "
            "another --out"
        )


def _best(folder: Path, member: Member, record: SuiteRecord) -> Start | None:
    """Return the best verified kernel of a problem; None where there is none.

    Raises:
        StoreError: its journal is damaged.
    """
    run = folder / member.folder
    standing = read_standing(run, member, None)
    result = standing.result
    if result is None and standing.state is State.FAILED:
        raise StoreError(f"--start: {(standing.reason or '').removeprefix('StoreError: ')}")
    if result is None or not result.passed:
        return None
    best = next(a for a in result.attempts if a.id == result.best_attempt_id)
    assert best.candidate_id is not None, "an attempt that passed has a candidate"
    with RunReader(run) as reader:
        kernel = reader.candidate(best.candidate_id)
    file = run / BEST_FOLDER / kernel.entry
    author = _begun_author(record, member) if is_the_start(best, result.attempts) else None
    return Start(
        kernel=kernel,
        path=str(file) if file.is_file() else None,
        author=author or str(record.options.get("model") or BUILTIN),
    )


def _begun_author(record: SuiteRecord, member: Member) -> str:
    begun = record.starts.get(member.name)
    return KERNEL_FILE if begun is None else begun.author


def _again(folder: Path, member: Member | None, record: SuiteRecord, begun: Begun) -> Start:
    """Return the kernel that a suite began from, also where a better one was found since.

    Raises:
        ConfigError: this suite does not have it.
        StoreError: its journal or the kernel is damaged.
    """
    if member is not None and (folder / member.folder / JOURNAL_FILE).is_file():
        best = _best(folder, member, record)
        if best is not None and best.kernel.id == begun.candidate_id:
            return Start(kernel=best.kernel, path=best.path, author=begun.author)
        with RunReader(folder / member.folder) as reader:
            if any(a.candidate_id == begun.candidate_id for a in reader.attempts()):
                kernel = reader.candidate(begun.candidate_id)
                return Start(kernel=kernel, path=None, author=begun.author)
    raise ConfigError(
        f"--start {folder}: it has not the kernel {begun.candidate_id[:12]} that this suite began "
        "from; give the suite that it began from, or another --out"
    )
