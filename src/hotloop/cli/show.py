"""`hotloop show`: look into a run, also while it goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hotloop import api
from hotloop.cli import attempt_text, options, run_text
from hotloop.cli.attempt_text import Parts
from hotloop.cli.output import Output
from hotloop.core.command_line import quoted
from hotloop.errors import ConfigError
from hotloop.store.sqlite import JOURNAL_FILE
from hotloop.suite.folder import RUNS_FOLDER, SUITE_FILE


def show(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    attempt: Annotated[int | None, typer.Option(help="Show this attempt and its source.")] = None,
    diff: Annotated[
        bool, typer.Option("--diff", help="How the attempt (or the best) differs from its parent.")
    ] = False,
    prompt: Annotated[
        bool, typer.Option("--prompt", help="What the model was asked for the attempt.")
    ] = False,
    reply: Annotated[bool, typer.Option("--reply", help="What the model answered.")] = False,
    json: options.Json = False,
) -> None:
    """Show a run's attempts, or one of them with its source."""
    if (run / SUITE_FILE).is_file():
        begun = sorted(journal.parent for journal in (run / RUNS_FOLDER).glob(f"*/{JOURNAL_FILE}"))
        one = f"show one of its runs, like {begun[0]}, or" if begun else "no run of it has begun;"
        whole = quoted(["hotloop", "report", run])
        raise ConfigError(f"{run} is a suite; {one} see all of it with {whole}")
    output = Output(as_json=json)
    parts = Parts(diff=diff, prompt=prompt, reply=reply)
    with api.load_run(run) as reader:
        if attempt is None and parts == Parts():
            output.result(run_text.run_record(reader), run_text.run_table(reader))
            return
        found = run_text.find_attempt(reader, attempt)
        output.result(
            attempt_text.attempt_record(reader, found, parts),
            attempt_text.attempt_text(reader, found, parts),
        )
