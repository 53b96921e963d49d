"""What a report shows, as plain records: filled from run folders elsewhere, rendered here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hotloop.core.attempt import Attempt
from hotloop.core.candidate import Candidate
from hotloop.core.problem import ProblemInfo
from hotloop.core.verdict import Verdict
from hotloop.report.endings import open_status
from hotloop.report.metrics import Speedup
from hotloop.report.plot import Plot

CPU = "cpu"


@dataclass(frozen=True, slots=True)
class Fact:
    """A line of a list of facts."""

    label: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """One problem beside one baseline, as the suite's figures count it."""

    state: str
    """`measured`, `unclaimed` (verified, but no ratio is claimed), `unsolved`, or `without`."""
    speedup: Speedup | None = None
    """What it counts with; None where there is no verified kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What a problem's run has spent. Unknown is None, never 0."""

    time_s: float | None
    """Of the budget's clock."""
    setup_s: float | None
    calls: int | None
    tokens: int | None
    usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemPage:
    """One problem: where it stands, its best kernel, and how that was found."""

    key: str
    """Unique in the page; letters, digits and hyphens."""
    name: str
    """`1/19`."""
    title: str
    level: str
    operator_class: str
    column: str
    """Generator, precision and device, never mixed: `model/as_shipped/cuda`."""
    device: str
    state: str
    """`done`, `waiting for reply`, ..."""
    status: str
    """`PASSED` (final tier), `FINAL_<status>`, `NO_KERNEL`, ..."""
    why: str = ""
    """Why it stands so, as far as it is known."""
    undecidable: str | None = None
    """Why a verdict on this problem says little; None when nothing was found against it."""
    info: ProblemInfo | None = None
    """None when the problem was not loaded."""
    best: Attempt | None = None
    finals: Mapping[str, Verdict] = field(default_factory=dict)
    """Final verdicts by candidate."""
    attempts: tuple[Attempt, ...] = ()
    library_anchor: bool | None = None
    """Whether the verified kernel leans on a vendor library; None when it is not solved."""
    kernel: Candidate | None = None
    """The best attempt's source."""
    kernel_trouble: str = ""
    """Why the source of the best attempt cannot be shown."""
    spent: Spending | None = None
    """None where the run was not begun or cannot be read."""
    beside: Mapping[str, Beside] = field(default_factory=dict)
    """By baseline; empty on `cpu`."""
    show_command: str = ""
    """The command line that looks closer."""
    plots: tuple[Plot, ...] = ()
    """Pictures of its run; none in a suite's report, which has too many runs for them."""
    search_ended: bool = False
    """Whether its run has ended for good, where `state` does not say it."""

    @property
    def final(self) -> Verdict | None:
        """The final verdict of the best attempt."""
        return None if self.best is None else self.finals.get(self.best.candidate_id or "")

    @property
    def verdict(self) -> Verdict | None:
        """The highest verdict of the best attempt."""
        return self.final or (None if self.best is None else self.best.verdict)

    @property
    def is_over(self) -> bool:
        """Whether its run has nothing left to do."""
        return self.state in ("done", "skipped")

    @property
    def open_status(self) -> str:
        """What an attempt without a verdict is."""
        return open_status(ended=self.is_over or self.search_ended)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A whole report."""

    title: str
    facts: tuple[Fact, ...]
    """What was run, on what, and when."""
    command: str
    """The command line that reproduces it."""
    command_note: str = ""
    """What the record does not hold of the command line."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """As `suite_figures` makes them; empty for a single run."""
    problems: tuple[ProblemPage, ...] = ()
    written_by: str = ""
    """Name and version of what wrote the page."""
