"""`hotloop verify`: judge one kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hotloop import api
from hotloop.cli import options
from hotloop.cli.audit_notice import with_audit_notice
from hotloop.cli.interpreter_notice import with_interpreter_notice
from hotloop.cli.output import Output
from hotloop.cli.verdict_text import verdict_text
from hotloop.cli.wording import plain
from hotloop.core.event import Event
from hotloop.kernel_file import read_candidate
from hotloop.plan import find_problem
from hotloop.problems.precision import describe_precision
from hotloop.search_options import ProblemOptions
from hotloop.verify import find_device
from hotloop.verify.isolation_choice import choose_tier

LOADING = "loading the reference; on a GPU its baselines are timed first"


def verify(
    problem: options.Problem,
    candidate: Annotated[
        Path, typer.Argument(metavar="CANDIDATE", help="A .py file with ModelNew, or a .cu file.")
    ],
    device: options.Device = "auto",
    tier: Annotated[
        str | None, typer.Option(help="fast or final. [default: final on a GPU, else fast]")
    ] = None,
    short: Annotated[
        bool, typer.Option("--short", help="Final tier without sanitizers, half the timing rounds.")
    ] = False,
    warm: Annotated[
        bool,
        typer.Option("--warm", help="Keep the judge for the next such call, five minutes at most."),
    ] = False,
    set_: options.Set = None,
    precision: options.Precision = None,
    data: options.Data = None,
    min_isolation: options.MinIsolation = None,
    json: options.Json = False,
) -> None:
    """Judge CANDIDATE against PROBLEM: compile it, check its numbers, time it."""
    output = Output(as_json=json)

    def listen(event: Event) -> None:
        if event.kind == "warning":
            output.say(f"warning: {plain(event.payload['message'])}")

    kernel = read_candidate(candidate)
    where = find_device(device)
    api.wanted_tier(tier, where, short=short)  # before anything is said or loaded
    choose_tier(min_isolation or api.DEFAULT_ISOLATION)
    wanted: ProblemOptions = {
        "settings": options.settings_of(set_),
        "data": options.data_of(problem, data),
        "precision": precision,
    }  # fmt: skip
    found = find_problem(problem, where, wanted)
    if precision is not None:
        output.say(describe_precision(found))
    begun = (
        "asking the warm judge; it loads the problem first where it has not yet"
        if warm
        else LOADING
    )
    output.say(begun)
    verdict = api.verify(
        found,
        kernel,
        device=where,
        tier=tier,
        short=short,
        warm=warm,
        min_isolation=min_isolation or api.DEFAULT_ISOLATION,
        listen=with_interpreter_notice(found, with_audit_notice(listen)),
    )
    output.result(verdict, verdict_text(verdict))
    raise typer.Exit(0 if verdict.passed else 1)
