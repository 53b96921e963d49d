"""Calls of a recording put into runs that begin, so that a pilot whose folder is gone goes on.

Each call becomes an intent and a response in the run's journal, with the prompt that was answered:
the run takes it for its own and never asks it again. Verdicts are not recorded; every kernel is
judged afresh. An arm other than the main one gets the first call only, which the arms share.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.pilot_runs import MAIN, PilotRun, StepOptions, plan_of
from hotloop.core.verdict import Tier
from hotloop.llm.call_notes import CallNotes
from hotloop.llm.recording import RecordedCall, read_recording
from hotloop.prompts.extract import Extracted, extract
from hotloop.store.sqlite import JOURNAL_FILE, SqliteStore
from hotloop.verify.bundle import Bundle, Item, write_bundle


def seed(runs: Sequence[PilotRun], language: str, recording: Path, options: StepOptions) -> int:
    """Begin the runs of one language that have not begun; return how many calls they got.

    Raises:
        ConfigError: the recording cannot be used.
        ValueError: it was made without its prompts.
    """
    calls = read_recording(recording).calls
    if any(call.prompt is None for call in calls):
        raise ValueError(f"{recording}: expected a recording with prompts")
    total = 0
    for run in runs:
        if run.language != language:
            continue
        plan = plan_of(run, options)
        if (plan.folder / JOURNAL_FILE).exists():
            continue
        mine = [call for call in calls if call.key.problem_id == plan.problem.id]
        if run.arm.name != MAIN:
            mine = [call for call in mine if call.key.attempt <= 1]
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


def bundle_recorded(
    runs: Sequence[PilotRun], recordings: dict[str, Path], options: StepOptions, out: Path
) -> int:
    """Write every recorded kernel of the main arm into one bundle, to be judged in one go.

    Only the last kernel of a run is profiled: the next prompt shows no older counters.
    """
    problems, items = {}, {}
    for run in runs:
        if run.arm.name != MAIN:
            continue
        plan = plan_of(run, options)
        problems[plan.problem.id] = plan.problem
        for call in read_recording(recordings[run.language]).calls:
            if call.key.problem_id != plan.problem.id or call.reply is None:
                continue
            found = extract(call.reply.text, language=run.language)
            if isinstance(found, Extracted):
                item = Item(problem_id=plan.problem.id, candidate=found.candidate, tier=Tier.FAST)
                items[item.key] = item
    write_bundle(out, Bundle(problems=problems, items=tuple(items.values())))
    return len(items)
