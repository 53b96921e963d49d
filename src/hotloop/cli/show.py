"""`hotloop show`: look into a run, also while it goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hotloop import api
from hotloop.cli import options, run_text
from hotloop.cli.output import Output


def show(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    attempt: Annotated[int | None, typer.Option(help="Show this attempt and its source.")] = None,
    diff: Annotated[
        bool, typer.Option("--diff", help="How the attempt (or the best) differs from its parent.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Show a run's attempts, or one of them with its source."""
    output = Output(as_json=json)
    with api.load_run(run) as reader:
        if attempt is None and not diff:
            output.result(run_text.run_record(reader), run_text.run_table(reader))
            return
        found = run_text.find_attempt(reader, attempt)
        output.result(
            run_text.attempt_record(reader, found, diff=diff),
            run_text.attempt_text(reader, found, diff=diff),
        )
