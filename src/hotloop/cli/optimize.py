"""`hotloop optimize`: search for a faster kernel."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from hotloop import api
from hotloop.cli import options, summary
from hotloop.cli.interpreter_notice import with_interpreter_notice
from hotloop.cli.output import Output
from hotloop.cli.screen import open_screen
from hotloop.cli.stopping import LoudStop
from hotloop.engine import interrupts
from hotloop.errors import ConfigError
from hotloop.plan import BUILTIN, plan_search


def optimize(
    problem: options.Problem,
    model: Annotated[str | None, typer.Option(help="Only builtin in this version.")] = None,
    device: options.Device = "auto",
    budget: Annotated[
        str | None, typer.Option(help="Wall clock: 45s, 15m, 1h30m. [default: 15m]")
    ] = None,
    max_candidates: Annotated[int | None, typer.Option(help="Stop after so many.")] = None,
    set_: options.Set = None,
    data: options.Data = None,
    strategy: Annotated[
        str | None, typer.Option(help="How schedules are searched. [default: tune]")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of the strategy. [default: 0]")] = None,
    parallel: Annotated[
        int | None, typer.Option(help="Builds beside a verification. [default: 2]")
    ] = None,
    min_isolation: options.MinIsolation = None,
    out: Annotated[
        Path | None, typer.Option(help="The run's folder; an existing run goes on.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Search for a faster kernel for PROBLEM and verify everything that is tried."""
    output = Output(as_json=json)
    if model not in (None, BUILTIN):
        raise ConfigError(
            f"--model {model}: this version has only {BUILTIN}; language models come with the next"
        )
    plan = plan_search(
        problem,
        budget=budget,
        device=device,
        out=out,
        settings=options.settings_of(set_),
        data=data,
        max_candidates=max_candidates,
        strategy=strategy,
        seed=seed,
        min_isolation=min_isolation,
        parallel=parallel,
    )
    for line in summary.opening(plan, is_default_model=model is None):
        output.say(line)
    stop = LoudStop()
    with interrupts(stop), open_screen(sys.stderr, os.environ) as screen:
        listen = with_interpreter_notice(plan.problem, screen)
        result = api.run_plan(plan, listen=listen, stop=stop)
    output.result(summary.record(plan, result), summary.closing(plan, result))
    raise typer.Exit(0 if result.passed else 1)
