"""The calls of a run as notes in its store: a `CallJournal` on top of any `Store`.

Three kinds of notes: `call_intent`, `call_response`, `call_failed`. They are read once, when a run
is opened.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

from hotloop.core import kill_points
from hotloop.core.model import CallKey, CallState, Prompt, Reply
from hotloop.core.protocols import Store
from hotloop.core.record import from_json, to_json
from hotloop.llm.recording import RecordedCall, RecordedError

INTENT, RESPONSE, FAILED = "call_intent", "call_response", "call_failed"

_Call = tuple[CallKey, str]


class CallNotes:
    """Keeps calls as notes. Safe to use from several threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._mutex = threading.Lock()
        self._open: Counter[_Call] = Counter()
        self._replies: dict[_Call, Reply] = {}
        self._prompts: dict[_Call, Prompt] = {}
        self._errors: dict[_Call, RecordedError] = {}
        for note in store.notes(INTENT):
            call = _call(note)
            self._open[call] += 1
            self._keep(call, from_json(Prompt, note["prompt"]))
        for note in store.notes(FAILED):
            self._open[_call(note)] -= 1
            self._errors[_call(note)] = RecordedError(kind=note["kind"], message=note["message"])
        for note in store.notes(RESPONSE):
            self._open[_call(note)] -= 1
            self._replies[_call(note)] = from_json(Reply, note["reply"])

    def state(self, key: CallKey, prompt_id: str) -> CallState:
        """Return what is known of a call."""
        with self._mutex:
            call = (key, prompt_id)
            return CallState(sent=self._open[call], reply=self._replies.get(call))

    def prompt(self, key: CallKey) -> Prompt | None:
        """Return the prompt that was last sent under this key; None when none was."""
        with self._mutex:
            sent = [prompt for (known, _), prompt in self._prompts.items() if known == key]
            return sent[-1] if sent else None

    def intend(self, key: CallKey, prompt: Prompt) -> None:
        """Record that a call is about to be sent."""
        with self._mutex:
            kill_points.reach("before-intent")
            self._store.note(INTENT, {**_fields(key, prompt.id), "prompt": to_json(prompt)})
            self._open[key, prompt.id] += 1
            self._keep((key, prompt.id), prompt)
            kill_points.reach("after-intent")

    def respond(self, key: CallKey, prompt_id: str, reply: Reply) -> None:
        """Record the answer of a call."""
        with self._mutex:
            kill_points.reach("before-response")
            self._store.note(RESPONSE, {**_fields(key, prompt_id), "reply": to_json(reply)})
            self._open[key, prompt_id] -= 1
            self._replies[key, prompt_id] = reply
            kill_points.reach("after-response")

    def fail(self, key: CallKey, prompt_id: str, error: Exception) -> None:
        """Record that a call ended without an answer."""
        found = RecordedError(kind=type(error).__name__, message=str(error))
        with self._mutex:
            self._store.note(FAILED, {**_fields(key, prompt_id), **to_json(found)})
            self._open[key, prompt_id] -= 1
            self._errors[key, prompt_id] = found

    def _keep(self, call: _Call, prompt: Prompt) -> None:
        self._prompts.pop(call, None)  # what was sent last stands last, also when it is sent again
        self._prompts[call] = prompt

    def recorded(self) -> list[RecordedCall]:
        """Return the settled calls, as a recording holds them; one for each key.

        A key that was asked with two prompts (the run went on with another version) counts once,
        with its later answer.
        """
        with self._mutex:
            found: dict[CallKey, RecordedCall] = {}
            for (key, prompt_id), prompt in self._prompts.items():
                reply = self._replies.get((key, prompt_id))
                error = None if reply else self._errors.get((key, prompt_id))
                if reply is None and (error is None or error.kind == "Pending"):
                    continue
                found[key] = RecordedCall(
                    key=key, prompt_id=prompt_id, prompt=prompt, reply=reply, error=error
                )
            return list(found.values())


def _fields(key: CallKey, prompt_id: str) -> dict[str, Any]:
    return {"key": to_json(key), "prompt_id": prompt_id}


def _call(note: Mapping[str, Any]) -> _Call:
    return from_json(CallKey, note["key"]), str(note["prompt_id"])
