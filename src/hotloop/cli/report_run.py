"""What a single run's folder says, as the records of a report: one problem, no figures."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from hotloop.cli.report_plots import run_plots
from hotloop.cli.report_problem import read_problem
from hotloop.cli.report_suite import (
    WRITTEN_BY,
    budget_words,
    generator_facts,
    machine_facts,
)
from hotloop.core.attempt import RunSpec
from hotloop.core.command_line import option_words, quoted
from hotloop.core.problem import Problem
from hotloop.core.record import to_json
from hotloop.errors import ForeignRun, HotloopError, StoreError
from hotloop.plan import COMMAND
from hotloop.problems.precision import asked_precision
from hotloop.report import display
from hotloop.report.page import Fact, Page
from hotloop.report.plot import Plot
from hotloop.store.reader import RunReader
from hotloop.suite.command import bench_command, command_options, not_recorded
from hotloop.suite.figures_rows import Column, SuiteRun
from hotloop.suite.folder import SUITE_FILE, Member, read_suite

_KERNELBENCH = re.compile(r"kernelbench/(\d+)/(\d+)")


def run_page(folder: Path) -> Page:
    """Return the report of one run.

    Raises:
        ForeignRun: there is no run in the folder, or a newer hotloop wrote it.
        StoreError: it cannot be read.
    """
    try:
        with RunReader(folder) as reader:
            spec, problem = reader.spec(), reader.problem()
    except (ValueError, KeyError, TypeError) as exc:
        told = display.one_line(exc)
        raise StoreError(
            f"{folder}: its journal cannot be read ({told}); restore it from a snapshot"
        ) from exc
    match = _KERNELBENCH.fullmatch(spec.problem_name)
    level, number = (int(match[1]), int(match[2])) if match else (0, 0)
    member = Member(
        name=spec.problem_name, level=level, number=number, title="", problem_id=spec.problem_id
    )
    column = Column(spec.generator, problem.policy.precision, spec.device)
    run = SuiteRun(level=level, problem_id=number, folder=folder, column=column)
    read = read_problem(run, member, None)
    fixed = ("generator", "strategy", "language", "device", "seed")
    options = {name: getattr(spec, name) for name in fixed} | dict(spec.options)
    options["settings"] = problem.settings
    limits = to_json(spec.budget) | {"parallel": spec.options.get("parallel")}
    command, command_note = _command(folder, spec, problem, options | {"limits": limits})
    asked = (
        Fact("Problem", display.one_line(spec.problem_name)),
        *generator_facts(options),
        Fact("Budget", budget_words(limits)),
    )
    return Page(
        title=spec.problem_name,
        facts=(*asked, *machine_facts([read])),
        command=command,
        command_note=command_note,
        problems=(replace(read.page, name=spec.problem_name, plots=_plots(folder)),),
        written_by=WRITTEN_BY,
    )


def _command(
    folder: Path, spec: RunSpec, problem: Problem, options: Mapping[str, Any]
) -> tuple[str, str]:
    """Return the line that goes on with a run, and what it lacks; of a suite's run, the suite's."""
    suite = folder.parent.parent if len(folder.parts) > 2 else folder.absolute().parent.parent
    if (suite / SUITE_FILE).is_file():
        with suppress(ForeignRun):
            record = read_suite(suite)
            told = ["the suite's, to which this run belongs", not_recorded(record)]
            return bench_command(record, suite), ", ".join(filter(None, told))
    words = spec.options.get(COMMAND)
    if words:
        return quoted([*words, "--out", folder]), ""
    words = ["hotloop", "optimize", spec.problem_name, *command_options(options, options["limits"])]
    words += option_words({"--precision": asked_precision(problem)})
    note = "with the path of the problem, --start, --data and --judge as they were: this run did "
    return quoted([*words, "--out", folder]), note + "not record them"


def _plots(folder: Path) -> tuple[Plot, ...]:
    try:
        return run_plots(folder)
    except (HotloopError, ValueError, KeyError, TypeError):
        return ()  # the page says itself what of the journal cannot be read
