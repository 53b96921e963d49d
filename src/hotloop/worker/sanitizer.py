"""Sanitizers at the final tier: errors of memory and of synchronisation that values do not show.

The launches of one forward are recorded and launched again under compute-sanitizer, in a process
without any Python of the candidate (`sanitizer_host.py`), at small sizes: those that the kernel
must be right on, or, where only the problem's own must work, these halved. There a kernel may do
what it likes, so what is found has to be found at the problem's own sizes too. An error in a kernel
of the recording refuses the candidate. Where a tool is missing, gives no answer or runs out of
time, the verdict names it and nothing else happens.

Not covered: forwards that cannot be recorded (library calls, arithmetic by torch, extensions in
CUDA C++), held-out shapes (evidence would tell of them), races in global memory. A recording is
what the candidate says it launches; the replay that is timed is what checks it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hotloop.core.candidate import Candidate
from hotloop.core.units import MIB
from hotloop.core.verdict import Evidence, Stage, Status
from hotloop.errors import HotloopError
from hotloop.worker.correctness import CorrectnessStage
from hotloop.worker.diagnosis import workload_of
from hotloop.worker.evaluation import Evaluation, Failed
from hotloop.worker.replay import Refused
from hotloop.worker.sanitizer_recording import Recorded
from hotloop.worker.sanitizer_report import Finding
from hotloop.worker.sanitizer_tools import (
    ALL_S,
    NOT_INSTALLED,
    TOOLS,
    Outcome,
    find_sanitizer,
    tools_for,
)
from hotloop.worker.view import WorkloadView
from hotloop.worker.workroom import Workroom

SHORT = "the short final tier leaves it out"
LARGEST_BYTES = 64 * MIB
"""Of the shapes with no more inputs and outputs than this, the largest one is taken."""
CALL_S = 10.0
"""One call at reduced sizes, with the compilation that it may need."""


class Shapes(Protocol):
    """What is asked of a session."""

    @property
    def nominal(self) -> WorkloadView:
        """The problem's own sizes."""

    def views(self, *, held_out: bool) -> list[WorkloadView]:
        """Return the other shapes that a candidate must be right on."""

    def reduced_view(self) -> WorkloadView | None:
        """Return the problem's own sizes made small; None where they cannot be."""


@dataclass(slots=True)
class Sanitizer:
    """One candidate's launches on their way to the tools."""

    shapes: Shapes
    room: Workroom
    candidate: Candidate
    ran: tuple[str, ...] = ()
    """Tools that found nothing."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Tool -> why it did not run, or gave no answer."""
    _recorded: Recorded | None = None
    _refused: str | None = None
    """Why there is no recording."""
    _left_s: float = ALL_S

    def wants(self, view: WorkloadView) -> bool:
        """Whether launches are to be recorded on a view: there is a tool, and this is the one."""
        if view is not telling_view(self.shapes.nominal, self.shapes.views(held_out=False)):
            return False
        if find_sanitizer() is None:
            self._skip(TOOLS, NOT_INSTALLED)
        return not self.skipped

    def record(self, view: WorkloadView, evaluation: Evaluation) -> None:
        """Record one forward of a loaded, correct candidate on the view's board.

        A forward that cannot be recorded is noted; whatever is wrong with it shows elsewhere.
        """
        try:
            self._recorded = Recorded.take(view, evaluation)
        except (Refused, Failed) as exc:
            self._refused = f"its launches cannot be recorded: {str(exc)[:200]}"

    def run(self, start: Callable[[WorkloadView], Evaluation]) -> None:
        """Run the tools; the board of what was recorded must hold its inputs still.

        Args:
            start: loads the candidate on another view.

        Raises:
            Failed: a tool found an error in a kernel of the candidate's.
        """
        if self.skipped:
            return
        tools, why_not = tools_for(self.candidate.language)
        small = self._reduced(start)
        try:
            if small is not None:
                self._watch_reduced(small, tools)
            elif self._recorded is not None:
                self._watch(self._recorded, tools)
            else:
                self._skip(tools, self._refused or "no forward was recorded")
        except OSError as exc:  # of this machine: no verdict hangs on it
            self._skip(tools, f"it cannot be started: {str(exc)[:200]}")
        finally:
            self.skipped.update(why_not)
            if small is not None:
                small.close()

    def skipped_checks(self) -> dict[str, str]:
        """Return, by name of the check, why a tool did not run."""
        return {check_name(tool): why for tool, why in self.skipped.items()}

    def close(self) -> None:
        """Let go of the recording. Idempotent."""
        recorded, self._recorded = self._recorded, None
        if recorded is not None:
            recorded.close()

    def _reduced(self, start: Callable[[WorkloadView], Evaluation]) -> Recorded | None:
        """Record at reduced sizes; None where they are not needed or the kernel is wrong there."""
        nominal = self.shapes.nominal
        is_small = set_bytes(nominal) <= LARGEST_BYTES
        recorded_elsewhere = self._recorded is not None and self._recorded.view is not nominal
        if is_small or recorded_elsewhere:
            return None
        view = self.shapes.reduced_view()
        if view is None:
            return None
        evaluation = None
        try:
            evaluation = start(view)
            CorrectnessStage(evaluation).run((view.book,), CALL_S)
            return Recorded.take(view, evaluation)
        except (Refused, Failed, HotloopError, RuntimeError):
            return None  # the problem's own sizes are left
        finally:
            if evaluation is not None:
                evaluation.close()

    def _watch(self, recorded: Recorded, tools: Sequence[str]) -> None:
        outcome = self._timed(recorded, tools)
        self._take(outcome)
        if outcome.findings:
            raise self._refusal(outcome, recorded.view)

    def _watch_reduced(self, small: Recorded, tools: Sequence[str]) -> None:
        """Run the tools at reduced sizes; what one finds counts if it finds it at full ones too."""
        left = list(tools)
        while left:
            outcome = self._timed(small, left)
            self._take(outcome)
            if outcome.tool is None:
                return
            left = left[left.index(outcome.tool) + 1 :]
            why = self._confirm(outcome.tool)
            self.skipped[outcome.tool] = f"an error at smaller sizes, which need not work; {why}"

    def _confirm(self, tool: str) -> str:
        """Run one tool at the problem's own sizes; return why what it found elsewhere is nothing.

        Raises:
            Failed: it found an error there too.
        """
        if self._recorded is None:
            return self._refused or "no forward was recorded"
        outcome = self._timed(self._recorded, (tool,))
        if outcome.findings:
            raise self._refusal(outcome, self._recorded.view)
        return outcome.skipped.get(tool, "not there at the problem's own sizes")

    def _timed(self, recorded: Recorded, tools: Sequence[str]) -> Outcome:
        start = time.monotonic()
        try:
            return recorded.watch(self.room, tools, all_s=max(0.0, self._left_s))
        finally:
            self._left_s -= time.monotonic() - start

    def _take(self, outcome: Outcome) -> None:
        self.ran = (*self.ran, *outcome.ran)
        self.skipped.update(outcome.skipped)

    def _refusal(self, outcome: Outcome, view: WorkloadView) -> Failed:
        assert outcome.tool is not None
        problem = view.reference.loaded.problem
        refused = refusal(outcome.tool, outcome.findings, self.candidate.entry)
        return refused.on({"workload": workload_of(problem, view.workload.name)})

    def _skip(self, tools: Iterable[str], why: str) -> None:
        self.skipped.update(dict.fromkeys(tools, why))


def check_name(tool: str) -> str:
    """Return what a verdict calls a tool among its checks."""
    return f"sanitizer:{tool}"


def skip_all(why: str) -> dict[str, str]:
    """Return the checks of all tools, left out for one reason."""
    return {check_name(tool): why for tool in TOOLS}


def telling_view(nominal: WorkloadView, others: Iterable[WorkloadView]) -> WorkloadView:
    """Return the shape to record at: small, with many blocks, and with ragged edges if there is.

    Only shapes that the kernel must be right on come into question: an error elsewhere is no fault.
    """
    small = [view for view in others if set_bytes(view) <= LARGEST_BYTES]
    return max(small, key=set_bytes) if small else nominal


def set_bytes(view: WorkloadView) -> int:
    """Return what one call's inputs and outputs take, parameters included."""
    layout = view.board.layout
    return layout.size_bytes // max(len(view.board.sets), 1)


def refusal(tool: str, findings: Sequence[Finding], entry: str) -> Failed:
    """Return the failure that a tool's findings are: the first in words, the others counted.

    Args:
        tool: what found them.
        findings: at least one.
        entry: the candidate's file that the evidence may name a line of.
    """
    first = findings[0]
    place = f" ({first.file}:{first.line})" if first.file else ""
    more = f"; {len(findings) - 1} more reported" if len(findings) > 1 else ""
    text = f"compute-sanitizer {tool}: {first.what} in kernel {first.kernel}{place}{more}"
    details: dict[str, Any] = {
        "tool": tool,
        "kernel": first.kernel[:120],
        "error": first.what,
        "log": "\n".join((first.what, *first.lines)),
    }
    if first.file == entry:
        details["line"] = first.line
    evidence = Evidence(kind=first.kind, message=text[:600], details=details)
    return Failed(Status.RUNTIME_ERROR, Stage.CORRECTNESS, evidence)
