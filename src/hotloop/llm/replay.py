"""A recording as a model: `replay:FILE`.

Replies are found by problem, attempt and sample. Prompts may differ from those that were recorded
(their words change with hotloop's version): that is counted, and said once at the end.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from pathlib import Path

from hotloop import errors
from hotloop.core.model import CallKey, Prompt, Reply
from hotloop.errors import ConfigError, NotRecorded, ProviderError
from hotloop.llm.recording import RecordedError, read_recording

SHOWN = 6
"""Problems of a recording that an error names; a suite has hundreds."""


class ReplayModel:
    """Plays the replies of a recording. Usage and cost are those of the recorded calls."""

    paid = False

    def __init__(self, path: Path) -> None:
        """Read the recording.

        Raises:
            ConfigError: it cannot be used.
        """
        self.name = f"replay:{path}"
        self._path = path
        self._recording = read_recording(path)
        self._calls = {call.key: call for call in self._recording.calls}
        self._mutex = threading.Lock()
        self._played: set[CallKey] = set()
        self._differing: set[CallKey] = set()
        self._missing: set[CallKey] = set()

    def __repr__(self) -> str:
        return f"ReplayModel({str(self._path)!r})"

    def cancel(self, key: CallKey) -> None:
        """Do nothing: no call takes time."""

    def close(self) -> None:
        """Do nothing: the file is read."""

    def check_problem(self, problem_id: str) -> None:
        """Refuse a problem that was not recorded.

        Raises:
            ConfigError: names the problems of the recording.
        """
        problems = self._recording.problems
        if problem_id not in problems:
            named = [f"{name} ({id_})" for id_, name in sorted(problems.items())]
            more = [f"{len(named) - SHOWN} more"] if len(named) > SHOWN else []
            recorded = ", ".join(named[:SHOWN] + more)
            raise ConfigError(
                f"{self.name} is a recording of {recorded or 'no problem'}, not of problem "
                f"{problem_id}; name the recording's problem with its sizes, or another recording"
            )

    def complete(self, prompt: Prompt, *, key: CallKey, deadline_s: float | None) -> Reply:
        """Return the recorded reply at once; the deadline does not matter.

        Raises:
            ConfigError: the recording is of another problem.
            NotRecorded: it is of this problem, but has no such call.
            ProviderError: the recorded call failed.
        """
        self.check_problem(key.problem_id)
        call = self._calls.get(key)
        if call is None:
            with self._mutex:
                self._missing.add(key)
            raise NotRecorded(f"{self.name} ends before call {key.text}; nothing more to play")
        with self._mutex:
            self._played.add(key)
            if call.prompt_id != prompt.id:
                self._differing.add(key)
        if call.error is not None:
            raise _as_error(call.error)
        assert call.reply is not None  # noqa: S101  a call has one or the other
        return call.reply

    def summary(self) -> str | None:
        """Return one line about prompts that differ from the recording; None when none does."""
        with self._mutex:
            differing, played = len(self._differing), len(self._played)
        if not differing:
            return None
        return (
            f"{differing} of {played} prompts differ from those in {self._path}; the replies "
            "are the recorded ones"
        )

    def unplayed(self, problem_id: str, settled: Collection[CallKey]) -> str | None:
        """Return one line where the search asked for other calls than those that were recorded.

        None where every call that was asked for is in the recording, or every recorded one was
        asked for: a recording may just end.

        Args:
            problem_id: the search's problem.
            settled: its calls that earlier sessions have played.
        """
        with self._mutex:
            used = self._played | set(settled)
            missing = sorted(key.text for key in self._missing)
        recorded = [key for key in self._calls if key.problem_id == problem_id]
        left = sum(key not in used for key in recorded)
        if not (left and missing):
            return None
        made = self._recording.made_with(problem_id)
        cure = (
            f"it was made with {made}: replay it with these"
            if made
            else "it does not say its --strategy, --parallel and --language: replay it with those "
            "of the recorded run"
        )
        return (
            f"{left} of {len(recorded)} calls in {self._path} were not played, {cure}, in a new "
            f"--out; this search asked for {missing[0]}, which is not among them"
        )


def _as_error(recorded: RecordedError) -> ProviderError:
    kind = getattr(errors, recorded.kind, None)
    if not (isinstance(kind, type) and issubclass(kind, ProviderError)):
        kind = ProviderError
    return kind(recorded.message)
