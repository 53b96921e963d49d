"""`hotloop optimize`: search for a faster kernel."""

from __future__ import annotations

import os
import sys

import typer

from hotloop import api
from hotloop.cli import options, summary
from hotloop.cli.audit_notice import with_audit_notice
from hotloop.cli.earlier_run import changes
from hotloop.cli.interpreter_notice import with_interpreter_notice
from hotloop.cli.output import Output
from hotloop.cli.screen import open_screen
from hotloop.cli.stopping import LoudStop
from hotloop.engine import RunResult, StopReason, interrupts
from hotloop.errors import Pending
from hotloop.plan import SearchPlan, plan_search
from hotloop.wiring import make_folder_of_answers


def optimize(
    problem: options.Problem,
    model: options.Model = None,
    start: options.Start = None,
    language: options.Language = None,
    device: options.Device = "auto",
    judge: options.Judge = None,
    budget: options.Budget = None,
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
    seed: options.Seed = None,
    parallel: options.Parallel = None,
    min_isolation: options.MinIsolation = None,
    close: options.Close = False,
    no_wait: options.NoWait = False,
    verdicts: options.Verdicts = None,
    out: options.Out = None,
    json: options.Json = False,
) -> None:
    """Search for a faster kernel for PROBLEM and verify everything that is tried."""
    output = Output(as_json=json)
    plan = plan_search(
        problem,
        model=model,
        start=start,
        language=language,
        budget=budget,
        device=device,
        judge=judge,
        out=out,
        settings=options.settings_of(set_),
        precision=precision,
        data=options.data_of(problem, data),
        max_candidates=max_candidates,
        max_calls=max_calls,
        max_tokens=max_tokens,
        max_usd=max_usd,
        strategy=strategy,
        sees=sees,
        examples=examples,
        seed=seed,
        min_isolation=min_isolation,
        parallel=parallel,
        close=close,
        no_wait=no_wait,
        verdicts=verdicts,
    )
    for line in _opening(plan, is_default_model=model is None):
        output.say(line)
    result = _run(plan)
    output.result(summary.record(plan, result), summary.closing(plan, result))
    raise typer.Exit(_exit_code(result))


def _opening(plan: SearchPlan, *, is_default_model: bool) -> list[str]:
    """Return what to say before anything runs, once it is known that something can run."""
    lines = [*summary.opening(plan, is_default_model=is_default_model), *changes(plan)]
    make_folder_of_answers(plan)
    return lines


def _run(plan: SearchPlan) -> RunResult:
    stop = LoudStop()
    with interrupts(stop), open_screen(sys.stderr, os.environ) as screen:
        listen = with_interpreter_notice(plan.problem, with_audit_notice(screen))
        return api.run_plan(plan, listen=listen, stop=stop)


def _exit_code(result: RunResult) -> int:
    if result.reason is StopReason.WAITING:
        return Pending.exit_code
    return 0 if result.passed else 1
