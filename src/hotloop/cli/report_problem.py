"""One problem of a report, read from its run folder; one that cannot be read says so."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace

from hotloop.core.candidate import Candidate
from hotloop.errors import StoreError
from hotloop.report.page import CPU, Beside, ProblemPage, Spending
from hotloop.store.reader import RunReader
from hotloop.suite.figures_rows import NO_RUN, UNREADABLE, RunRow, SuiteRun, read_row
from hotloop.suite.figures_speed import BASELINES, compare
from hotloop.suite.folder import Member, Trouble
from hotloop.suite.standing import Standing, State, read_standing

_DAMAGE = (KeyError, TypeError, AttributeError, IndexError)
"""What records of another shape lead to, besides ValueError and StoreError."""
WHY_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadProblem:
    """A problem as its run's journal tells it."""

    row: RunRow
    page: ProblemPage
    first_s: float | None = None
    """When the first event was written, seconds since the epoch; None where nothing is known."""
    last_s: float | None = None


def read_problem(run: SuiteRun, member: Member, trouble: Trouble | None) -> ReadProblem:
    """Return one problem: where it stands, its row of the figures, its kernel's source.

    Args:
        run: the folder and where the problem counts.
        member: the problem as the suite has it.
        trouble: why it could not be run, where its journal does not say so.
    """
    try:
        row = read_row(run)
        standing = read_standing(run.folder, member, trouble)
        if row.status != UNREADABLE:
            return _read(row, member, standing)
    except (ValueError, *_DAMAGE) as exc:
        why = " ".join(f"its journal cannot be read: {type(exc).__name__}: {exc}".split())
        row = RunRow(run=run, column=run.column, status=UNREADABLE, why=why[:WHY_CHARACTERS])
    return ReadProblem(row=row, page=_page(row, member, State.FAILED.value, row.why))


def _read(row: RunRow, member: Member, standing: Standing) -> ReadProblem:
    kernel: Candidate | None = None
    kernel_trouble = ""
    first_s = last_s = None
    if row.status != NO_RUN:
        with RunReader(row.run.folder) as reader:
            first_s = reader.first_written_at()
            last_s = reader.last_event().written_at
            try:
                kernel = _kernel(reader, row)
            except StoreError as exc:
                kernel_trouble = str(exc)
    page = _page(row, member, standing.state.value, standing.reason or row.why)
    page = replace(page, kernel=kernel, kernel_trouble=kernel_trouble, spent=_spending(standing))
    return ReadProblem(row=row, page=page, first_s=first_s, last_s=last_s)


def _kernel(reader: RunReader, row: RunRow) -> Candidate | None:
    if row.best is None or row.best.candidate_id is None:
        return None
    return reader.candidate(row.best.candidate_id)


def _spending(standing: Standing) -> Spending | None:
    found = standing.result
    if found is None:
        return None
    return Spending(
        time_s=found.spent_s,
        setup_s=found.setup_s,
        calls=found.calls,
        tokens=found.tokens,
        usd=found.usd,
    )


def _page(row: RunRow, member: Member, state: str, why: str) -> ProblemPage:
    on_cpu = row.column.device == CPU
    beside = {} if on_cpu else {name: _beside(row, name) for name in BASELINES}
    return ProblemPage(
        key=f"{member.level}-{member.number}",
        name=row.name,
        title=member.title,
        level=str(member.level),
        operator_class=row.operator_class,
        column=row.column.name,
        device=row.column.device,
        state=state,
        status=row.status,
        why=why,
        undecidable=row.undecidable,
        info=row.info,
        best=row.best,
        finals=row.finals,
        attempts=row.attempts,
        library_anchor=None if row.anchor is None else row.anchor.found,
        beside=beside,
        show_command=shlex.join(["hotloop", "show", str(row.run.folder)]),
    )


def _beside(row: RunRow, baseline: str) -> Beside:
    compared = compare(row, baseline)
    return Beside(state=compared.state.value, speedup=compared.speedup)
