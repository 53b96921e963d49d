"""`hotloop verify`: judge one kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hotloop import api
from hotloop.cli import options
from hotloop.cli.output import Output
from hotloop.cli.verdict_text import verdict_text


def verify(
    problem: options.Problem,
    candidate: Annotated[
        Path, typer.Argument(metavar="CANDIDATE", help="A .py file with ModelNew, or a .cu file.")
    ],
    device: options.Device = "auto",
    tier: Annotated[
        str | None, typer.Option(help="fast or final. [default: final on a GPU, else fast]")
    ] = None,
    set_: options.Set = None,
    data: options.Data = None,
    min_isolation: options.MinIsolation = None,
    json: options.Json = False,
) -> None:
    """Judge CANDIDATE against PROBLEM: compile it, check its numbers, time it."""
    output = Output(as_json=json)
    output.say("loading the reference; on a GPU its baselines are timed first")
    verdict = api.verify(
        problem,
        candidate,
        device=device,
        tier=tier,
        settings=options.settings_of(set_),
        data=data,
        min_isolation=min_isolation or api.DEFAULT_ISOLATION,
    )
    output.result(verdict, verdict_text(verdict))
    raise typer.Exit(0 if verdict.passed else 1)
