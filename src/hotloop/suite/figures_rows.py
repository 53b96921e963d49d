"""One row for each problem of a suite: what the journal of its run holds, read once.

A row is solved by a PASSED verdict of the final tier and by nothing else. A problem whose run was
not begun, cannot be read, or waits for an answer is a row too: it is counted as not solved, and its
status says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from hotloop.core.attempt import Attempt
from hotloop.core.problem import NOTHING_TELLS, ProblemInfo
from hotloop.core.record import from_json
from hotloop.core.verdict import Performance, Status, Tier, Verdict
from hotloop.engine.result import best_attempt
from hotloop.errors import ForeignRun, StoreError
from hotloop.store.reader import RunReader
from hotloop.suite.figures_anchor import Anchor, find_anchor
from hotloop.suite.figures_classes import operator_class
from hotloop.suite.figures_costs import Paid, paid_when_finished
from hotloop.suite.origin import began_from_a_kernel, is_the_start
from hotloop.verify.outside_notes import last_audit

PASSED, NO_FINAL, NO_KERNEL = "PASSED", "NO_FINAL", "NO_KERNEL"
NOT_LOADED, NO_RUN, UNREADABLE = "NOT_LOADED", "NO_RUN", "UNREADABLE"
FAST_TIER_PASSED = "FAST_TIER_PASSED"
"""On `cpu`, where there is no final tier."""


class Column(NamedTuple):
    """What is never mixed in one figure."""

    generator: str
    """`model` or `builtin`."""
    precision: str
    """`as_shipped`, `strict`, ..."""
    device: str
    """`cuda` or `cpu`."""

    @property
    def name(self) -> str:
        """`model/as_shipped/cuda`."""
        return "/".join(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRun:
    """One problem of a suite and the folder of its run."""

    level: int
    problem_id: int
    folder: Path
    """May be missing: then the problem counts as not solved."""
    title: str = ""
    """As the data set has it, `19_ReLU`: says the class of operator; empty: `unclassified`."""
    trouble: str = ""
    """Why the problem was not run, where the caller knows it; one line."""
    column: Column = Column("model", "as_shipped", "cuda")
    """Where the problem is counted while the run itself cannot say it."""
    start_of: str = ""
    """Who wrote the kernel that the run began from, where its suite began from another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """What one run came to."""

    run: SuiteRun
    column: Column
    status: str
    """`PASSED` (final tier), `FINAL_<status>`, or one of the words above."""
    why: str = ""
    """Why there is no final verdict, as far as the journal says it; one line."""
    is_waiting: bool = False
    """Whether only answers from outside are missing."""
    info: ProblemInfo | None = None
    """What the judge found by loading the problem; None when it was not loaded."""
    best: Attempt | None = None
    final: Verdict | None = None
    """The final verdict of the best attempt."""
    attempts: tuple[Attempt, ...] = ()
    finals: Mapping[str, Verdict] = field(default_factory=dict)
    """Final verdicts by candidate."""
    anchor: Anchor | None = None
    """Whether its verified kernel leans on a vendor library; None when it is not solved."""
    paid: Mapping[int, Paid] = field(default_factory=dict)
    """What had been spent when an attempt had its verdict, by attempt."""
    best_is_start: bool | None = None
    """Whether the best kernel is the one that the run began from, which its generator did not
    write; None where there is no best, or the run began from none."""

    @property
    def name(self) -> str:
        """`1/19`: level and number."""
        return f"{self.run.level}/{self.run.problem_id}"

    @property
    def is_solved(self) -> bool:
        """Whether its best kernel PASSED the final tier."""
        return self.status == PASSED

    @property
    def performance(self) -> Performance | None:
        """What the final tier measured; None unless it is solved."""
        return self.final.performance if self.is_solved and self.final is not None else None

    @property
    def operator_class(self) -> str:
        """The class of its operator."""
        return operator_class(self.run.level, self.run.title)

    @property
    def rankable(self) -> bool | None:
        """What the judge says of the problem; None when it was not loaded."""
        return None if self.info is None else self.info.rankable

    @property
    def undecidable(self) -> str | None:
        """Why a verdict on this problem says little; None when nothing was found against it.

        The problem can be faked, or no inputs tell right from wrong, which may show when it is
        loaded. A problem that was not loaded for any other reason is not undecidable: it stays in
        every target, as not solved.
        """
        if NOTHING_TELLS in self.run.trouble:
            return self.run.trouble
        if self.info is not None and not self.info.rankable:
            reasons = self.info.audit.reasons if self.info.audit is not None else self.info.notes
            return reasons[0] if reasons else "the problem can be faked"
        found = [a.verdict for a in self.attempts if a.verdict is not None]
        void = [
            v.evidence.message
            for v in found
            if v.status is Status.INCONCLUSIVE and v.evidence and v.evidence.kind == "no_cases"
        ]
        return void[0].split("\n")[0] if void and not self.is_solved else None


def read_rows(runs: Iterable[SuiteRun]) -> list[RunRow]:
    """Return a row for each run, in order of level and number.

    Raises:
        ValueError: two runs of one column are of the same problem.
    """
    rows = sorted(
        (read_row(run) for run in runs),
        key=lambda row: (row.column, row.run.level, row.run.problem_id),
    )
    for one, other in zip(rows, rows[1:], strict=False):
        if (one.column, one.name) == (other.column, other.name):
            raise ValueError(
                f"expected one run of {one.name} in {one.column.name}, got "
                f"{one.run.folder} and {other.run.folder}; give one of them"
            )
    return rows


def read_row(run: SuiteRun) -> RunRow:
    """Return the row of one run; a folder that cannot be read gives a row that says so."""
    try:
        with RunReader(run.folder) as reader:
            return _read(run, reader)
    except ForeignRun as exc:
        return RunRow(run=run, column=run.column, status=NO_RUN, why=_line(run.trouble or str(exc)))
    except (StoreError, ValueError) as exc:  # damaged, or records of another version
        return RunRow(run=run, column=run.column, status=UNREADABLE, why=_line(str(exc)))


def _read(run: SuiteRun, reader: RunReader) -> RunRow:
    spec = reader.spec()
    attempts = tuple(reader.attempts())
    noted = [from_json(Verdict, note["verdict"]) for note in reader.notes("final")]
    finals = {v.candidate_id: v for v in noted if v.tier is Tier.FINAL}
    setups, stops = reader.notes("setup"), reader.notes("stopped")
    info = _audited(from_json(ProblemInfo, setups[-1]["info"]), reader) if setups else None
    best = best_attempt(attempts, finals)
    final = finals.get(best.candidate_id or "") if best is not None else None
    device = info.device if info is not None else spec.device
    stop: Mapping[str, Any] = stops[-1] if stops else {"reason": "not ended", "message": None}
    status = _status(info, best, final)
    return RunRow(
        run=run,
        column=Column(spec.generator, reader.problem().policy.precision, device),
        status=status,
        why="" if status in (PASSED, FAST_TIER_PASSED) else _why(run, stop),
        is_waiting=stop["reason"] == "waiting",
        info=info,
        best=best,
        final=final,
        attempts=attempts,
        finals=finals,
        anchor=_anchor(reader, final) if status == PASSED else None,
        paid=paid_when_finished(reader),
        best_is_start=_is_start(best, attempts),
    )


def _is_start(best: Attempt | None, attempts: tuple[Attempt, ...]) -> bool | None:
    if best is None or not began_from_a_kernel(attempts):
        return None
    return is_the_start(best, attempts)


def _audited(info: ProblemInfo, reader: RunReader) -> ProblemInfo:
    """Return what was found of the problem, with the audit of the last load elsewhere.

    A run goes on with what it was begun with; whether its result says something is judged by the
    last that is known.
    """
    audit = last_audit(reader)
    return info if audit is None else replace(info, audit=audit, rankable=audit.rankable)


def _status(info: ProblemInfo | None, best: Attempt | None, final: Verdict | None) -> str:
    if info is None:
        return NOT_LOADED
    if best is None:
        return NO_KERNEL
    if info.device == "cpu":
        return FAST_TIER_PASSED
    if final is None:
        return NO_FINAL
    return PASSED if final.passed else f"FINAL_{final.status.value}"


def _why(run: SuiteRun, stop: Mapping[str, Any]) -> str:
    ended = f"{stop['reason']}: {stop['message'] or ''}".rstrip(": ")
    return _line(run.trouble or ended)


def _anchor(reader: RunReader, final: Verdict | None) -> Anchor | None:
    if final is None:
        return None
    return find_anchor(final, reader.candidate(final.candidate_id))


def _line(text: str) -> str:
    return text.strip().split("\n")[0][:200]
