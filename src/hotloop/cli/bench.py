"""`hotloop bench`: search on many problems, and say where each of them stands."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

import typer

from hotloop.cli import bench_figures, bench_options, bench_sharing, bench_text, options
from hotloop.cli.judge import seats
from hotloop.cli.output import Output
from hotloop.cli.stopping import LoudStop
from hotloop.cli.suite_screen import open_suite_screen, shown_search
from hotloop.engine import StopFlag, interrupts
from hotloop.errors import ConfigError, HotloopError, Pending
from hotloop.problems import KernelBenchEntry, list_kernelbench, pin_data
from hotloop.search_options import SearchOptions
from hotloop.suite.folder import Suite, check_suite
from hotloop.suite.planning import KERNELBENCH, Job, SuiteExtras, SuitePlan, plan_suite
from hotloop.suite.rounds import problems_of
from hotloop.suite.runner import SuiteOptions, run_suite, standings
from hotloop.suite.selection import select
from hotloop.suite.standing import WAITING, Standing, State
from hotloop.verify.bundle import Verdicts, read_verdicts
from hotloop.verify.gpu_memory import gpu_memory_bytes
from hotloop.wiring import make_folder_of_answers

MACHINE_FAULT = 3
MODEL_RUNS_PER_GPU = 3
"""A model takes half a minute to minutes for what a GPU verifies in two seconds, so one run leaves
it idle for most of the time. More runs need a core for each compiler and memory for each judge."""


class Places(TypedDict):
    """Fields of `SuiteOptions`."""

    seats: tuple[str | None, ...]
    runs_per_seat: int
    memory_bytes: dict[str | None, int]


def bench(
    suite: bench_options.SuiteName,
    levels: bench_options.Levels = None,
    problems: bench_options.Problems = None,
    gpus: bench_options.Gpus = None,
    runs_per_gpu: bench_options.RunsPerGpu = None,
    shared_budget: bench_options.SharedBudget = False,
    retry_skipped: bench_options.RetrySkipped = False,
    model: options.Model = None,
    start: bench_options.Start = None,
    start_only: bench_options.StartOnly = False,
    language: options.Language = None,
    device: options.Device = "auto",
    judge: options.Judge = None,
    budget: bench_options.ProblemBudget = None,
    max_candidates: options.MaxCandidates = None,
    max_calls: options.MaxCalls = None,
    max_tokens: options.MaxTokens = None,
    max_usd: options.MaxUsd = None,
    set_: options.Set = None,
    precision: options.Precision = None,
    data: options.Data = None,
    strategy: options.Strategy = None,
    sees: options.Sees = None,
    examples: options.Examples = None,
    held_out: bench_options.HeldOut = None,
    full_final: bench_options.FullFinal = False,
    seed: options.Seed = None,
    parallel: options.Parallel = None,
    min_isolation: options.MinIsolation = None,
    close: options.Close = False,
    no_wait: options.NoWait = False,
    verdicts: options.Verdicts = None,
    out: bench_options.Out = None,
    json: options.Json = False,
) -> None:
    """Search for a faster kernel for each problem of SUITE; limits are those of one problem."""
    if suite != KERNELBENCH:
        raise ConfigError(f"bench: expected the suite {KERNELBENCH}, got {suite!r}")
    # Every option of a run is passed on under its own name.
    given: SearchOptions = {
        "model": model, "start": start, "start_only": start_only, "language": language,
        "device": device, "judge": judge, "budget": budget, "max_candidates": max_candidates,
        "max_calls": max_calls, "max_tokens": max_tokens, "max_usd": max_usd, "seed": seed,
        "settings": options.settings_of(set_), "precision": precision, "data": pin_data(data),
        "strategy": strategy, "sees": sees, "examples": examples, "parallel": parallel,
        "min_isolation": min_isolation, "close": close, "no_wait": no_wait, "verdicts": verdicts,
    }  # fmt: skip
    entries = select(list_kernelbench(given["data"]), levels, problems)
    extra = _extras(entries, held_out, full=full_final, shared=shared_budget)
    plan = plan_suite(entries, _made(out, examples), given, extra)
    check_suite(plan.folder, plan.record)
    found = None if verdicts is None else read_verdicts(verdicts)
    chosen = SuiteOptions(
        **_places(plan, gpus, runs_per_gpu),
        shared_budget=shared_budget,
        verdicts=found,
        retry_skipped=retry_skipped,
    )
    raise typer.Exit(_run(plan, chosen, Output(as_json=json)))


def _run(plan: SuitePlan, chosen: SuiteOptions, output: Output) -> int:
    """Run a suite and say where it stands; return the exit code.

    Raises:
        HotloopError: what ended the suite early.
    """
    make_folder_of_answers(plan.jobs[0].plan)  # it is one for all problems
    for line in bench_text.opening(plan, chosen):
        output.say(line)
    if chosen.verdicts is not None and not _is_ours(plan, chosen.verdicts):
        output.say("--verdicts: the file holds nothing for the problems of this suite")
    stop = LoudStop()
    with interrupts(stop), Suite(plan.folder, plan.record) as suite:
        fatal = _shown(suite, plan, chosen, stop)
        rows, stored = standings(suite), suite.record
    found = bench_figures.figures(plan, rows)
    text = [
        bench_figures.tables(plan, rows, found),
        bench_text.closing(plan, rows),
        bench_sharing.closing(plan, stored),
    ]
    record = bench_text.record(plan, rows) | bench_sharing.record(stored) | {"figures": found}
    output.result(record, "\n".join(part for part in text if part))
    if fatal is not None:
        raise fatal
    return exit_code(rows)


def _shown(
    suite: Suite, plan: SuitePlan, chosen: SuiteOptions, stop: StopFlag
) -> HotloopError | None:
    """Run a suite behind the screen that suits the terminal."""
    names = [member.name for member in plan.record.problems]

    def known() -> dict[str, str]:
        return {row.member.name: row.state.value for row in standings(suite)}

    with open_suite_screen(sys.stderr, os.environ, names, known) as screen:

        def tell(job: Job, line: str) -> None:
            if line not in set(State):  # the screen has said that, and what it came to
                screen.say(job.member.name, line)

        shown = replace(chosen, shown=lambda search: shown_search(search, plan.jobs, screen))
        return run_suite(suite, plan, shown, tell=tell, stop=stop)


def exit_code(rows: Sequence[Standing]) -> int:
    """Return 3 where a machine failed, 4 where answers are missing.

    And 1 where the user stopped it, or no problem of all could be run.
    """
    states = {row.state for row in rows}
    if State.FAILED in states:
        return MACHINE_FAULT
    if State.OPEN in states or states == {State.SKIPPED}:
        return 1
    return Pending.exit_code if states & WAITING else 0


def _places(plan: SuitePlan, gpus: str | None, runs_per_gpu: int | None) -> Places:
    """Return where runs work and how many at a time."""
    where, runs = _seats(plan, gpus), runs_per_seat(plan, runs_per_gpu)
    has_neighbours = runs > 1 and where[0] is not None
    memory = gpu_memory_bytes(where) if has_neighbours else {}
    return {"seats": where, "runs_per_seat": runs, "memory_bytes": memory}


def runs_per_seat(plan: SuitePlan, given: int | None) -> int:
    """Return how many runs work on each GPU at a time.

    Raises:
        ConfigError: it was given, and no judge is here.
    """
    search = plan.jobs[0].plan
    if not search.judge.is_local:
        if given is not None:
            raise ConfigError(
                f"--runs-per-gpu: no kernel is judged here with --judge {search.judge}; drop it"
            )
        return 1
    has_model = search.config.model is not None
    is_default_many = has_model and search.spec.device == "cuda"
    return given or (MODEL_RUNS_PER_GPU if is_default_many else 1)


def _made(out: Path | None, examples: Sequence[Path] | None) -> Path | None:
    """Return the suite's folder, which is there when its own kernels are to be its examples."""
    if out is not None and out in (examples or ()):
        out.mkdir(parents=True, exist_ok=True)
    return out


def _extras(
    entries: Sequence[KernelBenchEntry], held_out: str | None, *, full: bool, shared: bool
) -> SuiteExtras:
    """Return what concerns all runs.

    Raises:
        ConfigError: a held-out problem is not in the suite.
    """
    names = _held_out(entries, held_out)
    return SuiteExtras(held_out=names, short_final=not full, shared_budget=shared)


def _held_out(entries: Sequence[KernelBenchEntry], given: str | None) -> frozenset[str]:
    """Return the names of the held-out problems.

    Raises:
        ConfigError: one of them is not in the suite.
    """
    if given is None:
        return frozenset()
    try:
        return frozenset(entry.name for entry in select(entries, None, given))
    except ConfigError as exc:
        raise ConfigError(str(exc).replace("--problems", "--held-out")) from exc


def _is_ours(plan: SuitePlan, verdicts: Verdicts) -> bool:
    return bool(problems_of(verdicts) & {member.problem_id for member in plan.record.problems})


def _seats(plan: SuitePlan, gpus: str | None) -> tuple[str | None, ...]:
    search = plan.jobs[0].plan
    if search.judge.is_local:
        return seats(search.spec.device, gpus)
    if gpus is not None:
        raise ConfigError(f"--gpus: no kernel is judged here with --judge {search.judge}; drop it")
    return (None,)
