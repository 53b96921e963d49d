"""A suite's folder as runs to take figures of: one way for the report, the page and the results."""

from __future__ import annotations

from pathlib import Path

from hotloop.suite.figures_rows import Column, SuiteRun
from hotloop.suite.folder import Member, SuiteRecord


def recorded_run(folder: Path, record: SuiteRecord, member: Member) -> SuiteRun:
    """Return a problem of a suite with the trouble that its record tells of.

    Args:
        folder: the suite's.
        record: what its file says.
        member: one of its problems.
    """
    trouble = record.troubles.get(member.name)
    options, start = record.options, record.starts.get(member.name)
    return SuiteRun(
        level=member.level,
        problem_id=member.number,
        folder=folder / member.folder,
        title=member.title,
        trouble="" if trouble is None else f"{trouble.kind}: {trouble.message}",
        column=Column(str(options.get("generator")), record.precision, str(options.get("device"))),
        start_of="" if start is None else start.author,
    )
