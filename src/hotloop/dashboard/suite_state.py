"""A suite as its page needs it: every problem as its run's journal tells it, read once.

Reading 200 journals takes seconds, so a page asks for what is there (`Shelf.peek`) and is told when
the rest is; a problem is read again only when its journal changed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from hotloop.dashboard.tail import Signature, signature
from hotloop.report.page import ProblemPage
from hotloop.suite.figures import figures_of
from hotloop.suite.figures_rows import RunRow, SuiteRun
from hotloop.suite.folder import RUNS_FOLDER, SUITE_FILE, Member, SuiteRecord, Trouble, read_suite
from hotloop.suite.recorded import recorded_run


class ReadProblem(Protocol):
    """A problem as its run's journal tells it."""

    @property
    def row(self) -> RunRow:
        """What the suite's figures count."""

    @property
    def page(self) -> ProblemPage:
        """What pages show."""


ReadsProblem = Callable[[SuiteRun, Member, Trouble | None], ReadProblem]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    seen: Signature
    trouble: Trouble | None
    read: ReadProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteState:
    """A suite at one moment."""

    record: SuiteRecord
    kept: Mapping[str, _Kept]
    """By the problem's name."""
    figures: Mapping[str, Any]

    @property
    def problems(self) -> Sequence[ProblemPage]:
        """All problems, in the order of the suite."""
        return [self.kept[member.name].read.page for member in self.record.problems]


def suite_signature(folder: Path) -> Hashable:
    """Return what changes whenever anything in a suite may have changed."""
    try:
        found = (folder / SUITE_FILE).stat()
        mark = (found.st_ino, found.st_size, found.st_mtime_ns)
        runs = sorted(path for path in (folder / RUNS_FOLDER).iterdir() if path.is_dir())
    except OSError:
        return None
    return mark, tuple((path.name, signature(path)) for path in runs)


def suite_reader(
    read_problem: ReadsProblem,
) -> Callable[[Path, SuiteState | None], SuiteState]:
    """Return what reads a suite, given what reads one problem."""

    def read(folder: Path, former: SuiteState | None) -> SuiteState:
        record = read_suite(folder)
        kept: dict[str, _Kept] = {}
        for member in record.problems:
            trouble = record.troubles.get(member.name)
            run_folder = folder / member.folder
            seen = signature(run_folder)
            known = None if former is None else former.kept.get(member.name)
            if known is not None and known.seen == seen and known.trouble == trouble:
                kept[member.name] = known
                continue
            found = read_problem(recorded_run(folder, record, member), member, trouble)
            kept[member.name] = _Kept(seen=seen, trouble=trouble, read=found)
        figures = figures_of([one.read.row for one in kept.values()])
        return SuiteState(record=record, kept=kept, figures=figures)

    return read
