"""One attempt, whole: its verdict, its source and its parent's, its prompts and replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop.core.attempt import Action, Attempt
from hotloop.core.candidate import Candidate
from hotloop.core.model import CallKey, Prompt, Reply
from hotloop.core.record import from_json
from hotloop.errors import StoreError
from hotloop.llm.call_notes import FAILED, INTENT, RESPONSE
from hotloop.store.reader import RunReader
from hotloop.store.rows import StoredEvent

PINS = "pinned values"
"""Name of the file that the pinned values are shown as: they are all that a sweep changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One question to a model and what became of it."""

    part: int
    prompt: Prompt
    reply: Reply | None = None
    failure: str | None = None
    """Why there is no reply; None when there is one, or nothing came yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """What the journal and the blobs hold of one attempt."""

    attempt: Attempt
    files: Mapping[str, str]
    """Text by path; empty where no code was written yet, or it cannot be shown."""
    parent_id: int | None
    """What the difference is to: its parent; of a schedule, the one before it."""
    parent_files: Mapping[str, str]
    trouble: str
    """Why sources are missing; empty where they are not."""
    calls: tuple[Call, ...]


def read_attempt(folder: Path, attempt_id: int) -> AttemptRecord | None:
    """Return an attempt; None where the run has none of that number.

    Raises:
        ForeignRun, StoreError, ValueError: the journal cannot be read.
    """
    with RunReader(folder) as reader:
        record = reader.attempt_record(attempt_id)
        if record is None:
            return None
        attempt = from_json(Attempt, record)
        parent = _parent(reader, attempt)
        files, trouble = _files(reader, attempt)
        parent_files, parent_trouble = ({}, "") if parent is None else _files(reader, parent)
        return AttemptRecord(
            attempt=attempt,
            files=files,
            parent_id=None if parent is None else parent.id,
            parent_files=parent_files,
            trouble=trouble or parent_trouble,
            calls=_calls(reader.call_notes((INTENT, RESPONSE, FAILED), attempt_id)),
        )


def read_whole(folder: Path, attempt_id: int) -> Attempt | None:
    """Return an attempt with its whole verdict; None where the run has none of that number.

    Raises:
        ForeignRun, StoreError, ValueError: the journal cannot be read.
    """
    with RunReader(folder) as reader:
        record = reader.attempt_record(attempt_id)
    return None if record is None else from_json(Attempt, record)


def read_files(folder: Path, attempt: Attempt) -> tuple[dict[str, str], str]:
    """Return an attempt's files, and why some are missing."""
    with RunReader(folder) as reader:
        return _files(reader, attempt)


def _parent(reader: RunReader, attempt: Attempt) -> Attempt | None:
    wanted = sorted((n for n in attempt.parents if n < attempt.id), reverse=True)
    if not attempt.parents and attempt.action == Action.SCHEDULE:
        wanted = [attempt.id - 1]
    for number in wanted:
        record = reader.attempt_record(number)
        if record is not None:
            return from_json(Attempt, record)
    return None


def _files(reader: RunReader, attempt: Attempt) -> tuple[dict[str, str], str]:
    if attempt.candidate_id is None:
        return {}, ""
    try:
        candidate = reader.candidate(attempt.candidate_id)
    except StoreError as exc:
        return {}, str(exc)
    return _texts(candidate), ""


def _texts(candidate: Candidate) -> dict[str, str]:
    files = {source.path: source.text for source in candidate.sources}
    pins = "".join(f"{name} = {value!r}\n" for name, value in candidate.pins.items())
    return files | ({PINS: pins} if pins else {})


def _calls(notes: Sequence[StoredEvent]) -> tuple[Call, ...]:
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for note in notes:
        key = from_json(CallKey, note.payload["key"])
        where = key.text, str(note.payload["prompt_id"])
        if note.kind == INTENT:
            prompt = from_json(Prompt, note.payload["prompt"])
            found[where] = {"part": key.part, "prompt": prompt}
        elif where in found and note.kind == RESPONSE:
            reply = from_json(Reply, note.payload["reply"])
            found[where] |= {"reply": reply, "failure": None}
        elif where in found:
            found[where]["failure"] = f"{note.payload['kind']}: {note.payload['message']}"
    return tuple(Call(**call) for call in found.values())
