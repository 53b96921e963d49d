"""The calls of one arm of the pilot as recordings, for `replay:` and `make demo-model`.

A recording finds calls by problem and attempt, so each language of one problem goes into a file of
its own: FILE, and FILE with `_gluon` or `_cuda` before its suffix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from benchmarks.pilot_runs import MAIN, PilotRun, open_runs
from hotloop.core.language import LANGUAGES, TRITON
from hotloop.core.protocols import Store
from hotloop.llm.call_notes import RESPONSE, CallNotes
from hotloop.llm.recording import RecordedCall, Recording, write_recording

MAX_BYTES = 5_000_000
"""A larger recording is written again without its prompts; they are rendered afresh in a replay."""


def record(folder: Path, runs: Sequence[PilotRun], out: Path, arm: str = MAIN) -> list[str]:
    """Write the recordings of one arm; return a line about each."""
    lines = []
    for language in LANGUAGES:
        mine = [run for run in runs if run.arm.name == arm and run.language == language]
        recording = _recording(folder, mine)
        if not recording.calls:
            continue
        suffix = "" if language == TRITON.name else f"_{language}"
        path = out.with_name(f"{out.stem}{suffix}{out.suffix}")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_recording(path, recording)
        told = "with prompts"
        if path.stat().st_size > MAX_BYTES:
            bare = tuple(replace(call, prompt=None) for call in recording.calls)
            write_recording(path, replace(recording, calls=bare))
            told = "without prompts"
        size = path.stat().st_size
        lines.append(f"{path}: {len(recording.calls)} calls {told}, {size / 1e6:.2f} MB")
    return lines


def _recording(folder: Path, runs: Sequence[PilotRun]) -> Recording:
    problems: dict[str, str] = {}
    calls: list[RecordedCall] = []
    models: set[str] = set()
    for reader in open_runs(folder, runs):
        with reader:
            problem = reader.problem()
            # Only notes are read here, and a reader has those.
            recorded = CallNotes(cast(Store, reader)).recorded()
            models |= {str(note["reply"]["model"]) for note in reader.notes(RESPONSE)}
        if recorded:
            problems[problem.id] = problem.name
            calls += recorded
    return Recording(
        model=", ".join(sorted(models)) or "unknown", problems=problems, calls=tuple(calls)
    )
