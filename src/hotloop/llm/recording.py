"""Recordings: the calls of runs in one file, to be played again without a model.

JSON lines, compressed where the file's name ends in `.gz`: a header, then one call a line. A call
holds its key, its prompt and either the reply or the error that ended it. Verdicts are not in it:
they are made afresh.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hotloop.core.command_line import option_words, quoted
from hotloop.core.model import CallKey, Prompt, Reply
from hotloop.core.packed import DAMAGED, is_packed, packed
from hotloop.core.record import dumps, from_json
from hotloop.errors import ConfigError

FORMAT = "hotloop-recording"
VERSION = 1
OPTIONS = ("strategy", "parallel", "language", "sees", "seed")
"""What decides which calls a search asks for, besides its start."""
START = "start"
"""Among a run's options: the id of the candidate that it began with."""
MAX_BYTES = 1 << 30
"""A recording that unpacks to more is refused before it fills the memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedError:
    """How a call failed: a class of `hotloop.errors` and its message."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """One call."""

    key: CallKey
    prompt_id: str
    prompt: Prompt | None = None
    """None where it was left out to keep the file small."""
    reply: Reply | None = None
    error: RecordedError | None = None

    def __post_init__(self) -> None:
        if (self.reply is None) == (self.error is None):
            raise ValueError("expected a call with either a reply or an error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """The calls of one or more runs."""

    model: str
    """Who answered."""
    problems: Mapping[str, str]
    """The name of each problem by its id."""
    calls: tuple[RecordedCall, ...]
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Of each problem's run by its id: strategy, parallel, language and what else decides which
    calls a replay asks for. Empty in recordings of an older hotloop."""

    def made_with(self, problem_id: str) -> str:
        """Return the options of a problem's run as on a command line; empty: not known."""
        known = self.options.get(problem_id) or {}
        words = quoted(option_words({f"--{name}": known.get(name) for name in OPTIONS}))
        return f"{words} and the same --start" if START in known else words


def write_recording(path: Path, recording: Recording) -> None:
    """Write a recording; the file is whole or not there.

    Raises:
        ValueError: two calls have the same key, or a call's problem is not named.
        OSError: the file system refused.
    """
    _check(recording)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "model": recording.model,
        "problems": dict(recording.problems),
    }
    if recording.options:
        header["options"] = {id_: dict(known) for id_, known in recording.options.items()}
    temporary = path.with_name(f".{path.name}.tmp{os.getpid()}")
    try:
        text = "".join(dumps(record) + "\n" for record in (header, *recording.calls))
        with open(temporary, "wb") as file:
            file.write(packed(path, text))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):  # it need not be there, and its file system may be read-only
            temporary.unlink()
        raise


def read_recording(path: Path) -> Recording:
    """Read a recording.

    Raises:
        ConfigError: it cannot be read, is none, is damaged, or a newer hotloop wrote it.
    """
    try:
        lines = _read_text(path).split("\n")  # a reply may hold what else ends a line
    except DAMAGED as exc:
        raise ConfigError(f"the recording {path} is damaged: {exc}; get a whole copy") from None
    except OSError as exc:
        raise ConfigError(f"the recording {path} cannot be read: {exc.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(
            f"expected a recording in {path}, got something that is no text"
        ) from None
    header = _read_header(path, lines[0] if lines else "")
    calls = tuple(
        _read_call(path, number, line) for number, line in enumerate(lines[1:], 2) if line.strip()
    )
    try:
        recording = Recording(
            model=str(header.get("model")),
            problems=header.get("problems") or {},
            calls=calls,
            options=_known_options(header.get("options")),
        )
        _check(recording)
    except ValueError as exc:
        raise ConfigError(f"the recording {path} is damaged: {exc}") from None
    return recording


def _read_text(path: Path) -> str:
    if not is_packed(path):
        return path.read_text(encoding="utf-8")
    with gzip.open(path, "rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ConfigError(f"the recording {path} unpacks to over {MAX_BYTES >> 20} MiB; split it")
    return data.decode()


def _read_header(path: Path, line: str) -> Mapping[str, Any]:
    try:
        header = json.loads(line)
    except ValueError:
        header = None
    if not isinstance(header, Mapping) or header.get("format") != FORMAT:
        raise ConfigError(f"expected a recording of hotloop in {path}, got another kind of file")
    if header.get("version") != VERSION:
        raise ConfigError(
            f"the recording {path} has version {header.get('version')!r}, this hotloop reads "
            f"{VERSION}; use the hotloop that wrote it"
        )
    return header


def _known_options(found: object) -> Mapping[str, Mapping[str, Any]]:
    """Return what is known of the runs' options; of a form that is not known nothing is."""
    if not isinstance(found, Mapping):
        return {}
    plain = (str, int, float, bool)
    return {
        id_: {name: value for name, value in known.items() if isinstance(value, plain)}
        for id_, known in found.items()
        if isinstance(known, Mapping)
    }


def _read_call(path: Path, number: int, line: str) -> RecordedCall:
    try:
        return from_json(RecordedCall, json.loads(line))
    except ValueError as exc:
        raise ConfigError(f"the recording {path} is damaged in line {number}: {exc}") from None


def _check(recording: Recording) -> None:
    seen: set[CallKey] = set()
    for call in recording.calls:
        if call.key in seen:
            raise ValueError(f"the call {call.key.text} is in it twice")
        if call.key.problem_id not in recording.problems:
            raise ValueError(f"the call {call.key.text} is of a problem that is not in its header")
        seen.add(call.key)
