"""What a suite came to, in figures: as text where kernels are timed and all runs have ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hotloop.suite.figures import suite_figures
from hotloop.suite.figures_rows import Column, SuiteRun
from hotloop.suite.planning import SuitePlan
from hotloop.suite.standing import WAITING, Standing, State
from hotloop.suite.tables import suite_tables

CPU = "cpu"


def figures(plan: SuitePlan, rows: Sequence[Standing]) -> dict[str, Any]:
    """Return the figures of a suite, read from its run folders."""
    search = plan.jobs[0].plan
    generator = "builtin" if search.config.model is None else "model"
    column = Column(generator, plan.record.precision, str(search.spec.device))
    return suite_figures(
        SuiteRun(
            level=row.member.level,
            problem_id=row.member.number,
            folder=plan.folder / row.member.folder,
            title=row.member.title,
            trouble=row.reason or "",
            column=column,
        )
        for row in rows
    )


def tables(plan: SuitePlan, rows: Sequence[Standing], found: dict[str, Any]) -> str:
    """Return the figures as text; nothing on a CPU, which times nothing, or before the end."""
    is_over = not any(row.state in WAITING or row.state is State.OPEN for row in rows)
    on_cpu = plan.jobs[0].plan.spec.device == CPU
    return suite_tables(found) if is_over and not on_cpu else ""
