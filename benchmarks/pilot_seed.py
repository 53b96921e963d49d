"""Calls of a recording put into runs that begin, so that a pilot whose folder is gone goes on.

Each call becomes an intent and a response in the run's journal, with the prompt that was answered:
the run takes it for its own and never asks it again. Verdicts come from a verdict file, through
`step --verdicts`; a kernel that has none there is judged afresh. The arms share their first call:
with `--attempts 1` an arm gets it from another's recording.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.pilot_runs import PilotRun, StepOptions, plan_of
from hotloop.llm.call_notes import CallNotes
from hotloop.llm.recording import RecordedCall, read_recording
from hotloop.store.sqlite import JOURNAL_FILE, SqliteStore


def seed(
    runs: Sequence[PilotRun],
    recording: Path,
    options: StepOptions,
    *,
    attempts: int | None = None,
) -> int:
    """Begin those of the runs that have not begun; return how many calls they got.

    Args:
        runs: of one language, that of the recording.
        recording: the calls.
        options: as for `step`.
        attempts: calls of later attempts are left out; None: all are taken.

    Raises:
        ConfigError: the recording cannot be used.
        ValueError: it was made without its prompts.
    """
    calls = read_recording(recording).calls
    if any(call.prompt is None for call in calls):
        raise ValueError(f"{recording}: expected a recording with prompts")
    total = 0
    for run in runs:
        plan = plan_of(run, options)
        if (plan.folder / JOURNAL_FILE).exists():
            continue
        mine = [call for call in calls if call.key.problem_id == plan.problem.id]
        if attempts is not None:
            mine = [call for call in mine if call.key.attempt <= attempts]
        with SqliteStore(plan.folder) as store:
            store.begin(plan.spec, plan.problem)
            total += _write(CallNotes(store), mine)
    return total


def _write(notes: CallNotes, calls: Sequence[RecordedCall]) -> int:
    answered = 0
    for call in calls:
        if call.reply is None or call.prompt is None:
            continue
        notes.intend(call.key, call.prompt)
        notes.respond(call.key, call.prompt_id, call.reply)
        answered += 1
    return answered
