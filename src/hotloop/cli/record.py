"""`hotloop record`: the model calls of runs in one file, to be played again by `replay:FILE`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from hotloop import api
from hotloop.cli import options
from hotloop.cli.bundle import run_folders
from hotloop.cli.output import Output, check_file, writing
from hotloop.config import Settings
from hotloop.core.attempt import RunSpec
from hotloop.core.protocols import Store
from hotloop.errors import ConfigError
from hotloop.llm.call_notes import RESPONSE, CallNotes
from hotloop.llm.recording import START, RecordedCall, Recording, write_recording

FOLDER = "dir:"
SEES: str = Settings.model_fields["sees"].default


def record(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Run folders, suites, or folders of runs."),
    ],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The recording; compressed if it ends in .gz.")
    ],
    prompts: Annotated[
        bool, typer.Option(help="Keep the prompts; a replay renders them afresh without.")
    ] = True,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who answered, where the runs do not say it.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Write the model calls of runs into one file that replay:FILE plays again."""
    output = Output(as_json=json)
    check_file(out, like="calls.jsonl")
    recording = _named(recording_of(run_folders(runs)), model)
    if not prompts:
        bare = tuple(replace(call, prompt=None) for call in recording.calls)
        recording = replace(recording, calls=bare)
    try:
        with writing(out):
            write_recording(out, recording)
    except ValueError as exc:
        raise ConfigError(f"{exc}; record runs of one problem in two languages apart") from exc
    size, problems = out.stat().st_size, len(recording.problems)
    text = f"{out}: {len(recording.calls)} calls of {problems} problem(s), {size / 1e6:.2f} MB"
    made = sorted({recording.made_with(id_) for id_ in recording.options})
    if made:
        several = f"{len(made)} sets of options, like " if len(made) > 1 else ""
        text += f"; to be replayed with {several}{made[0]}"
    record = {"out": str(out), "calls": len(recording.calls), "problems": problems, "bytes": size}
    output.result({**record, "options": recording.options}, text)


def _named(recording: Recording, model: str | None) -> Recording:
    """Return a recording that says who answered and no path of this machine."""

    def name(of: str) -> str:
        return model or (FOLDER if of.startswith(FOLDER) else of)

    calls = tuple(
        call if call.reply is None else replace(call, reply=replace(call.reply, model=name(m)))
        for call in recording.calls
        for m in [call.reply.model if call.reply is not None else ""]
    )
    return replace(recording, model=name(recording.model), calls=calls)


def _options(spec: RunSpec) -> dict[str, Any]:
    """Return what decides which calls a replay of a run asks for."""
    found = {"strategy": spec.strategy, "parallel": spec.options.get("parallel")}
    found |= {"language": spec.language, "seed": spec.seed or None}
    sees = spec.options.get("sees")
    found |= {"sees": sees if sees != SEES else None, START: spec.options.get(START)}
    return {name: value for name, value in found.items() if value is not None}


def recording_of(folders: list[Path]) -> Recording:
    """Return the calls of runs.

    Raises:
        ConfigError: no model was called in any of them.
        ForeignRun: a folder holds no run.
    """
    problems: dict[str, str] = {}
    calls: list[RecordedCall] = []
    models: dict[str, None] = {}
    made: dict[str, dict[str, Any]] = {}
    for folder in folders:
        with api.load_run(folder) as reader:
            # Only notes are read here, and a reader has those.
            found = CallNotes(cast(Store, reader)).recorded()
            models |= dict.fromkeys(str(n["reply"]["model"]) for n in reader.notes(RESPONSE))
            problem = reader.problem()
            # One without a call is named too: a replay of the suite then waits where this one did.
            problems[problem.id] = problem.name
            calls += found
            if found:
                made[problem.id] = _options(reader.spec())
    if not calls:
        raise ConfigError("expected a run in which a model was called, none of these has a call")
    return Recording(model=", ".join(models), problems=problems, calls=tuple(calls), options=made)
