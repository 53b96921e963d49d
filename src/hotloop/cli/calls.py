"""The model calls of a stored run: what each attempt's prompt said and what came back.

Read from the notes of the journal (`hotloop.llm.call_notes`); nothing is sent. Replies are what a
model wrote: print them through `wording.printable` only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hotloop.core.model import CallKey, Prompt, Reply, add_known
from hotloop.core.record import from_json
from hotloop.llm.call_notes import FAILED, INTENT, RESPONSE
from hotloop.llm.directory import prompt_text
from hotloop.store.reader import RunReader

PENDING = "Pending"
COST = "call_cost"
"""Kind of the notes on what an attempt's calls cost; the last one of an attempt counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCall:
    """One call as the journal has it."""

    key: CallKey
    prompt: Prompt
    reply: Reply | None = None
    failure: str | None = None
    """Why there is no reply, `KIND: MESSAGE`; None when there is one, or nothing came yet."""
    is_pending: bool = False
    """Whether its answer is awaited from outside."""

    @property
    def prompt_text(self) -> str:
        """The prompt as one text."""
        return prompt_text(self.prompt)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTotals:
    """What all calls of a run came to. Unknown is None, never 0."""

    calls: int
    tokens: int | None
    usd: float | None
    call_s: float
    """Summed over calls, so it is longer than the clock where they ran at the same time."""
    answered_by: tuple[str, ...]
    """Who answered, as each source names it."""


def stored_calls(reader: RunReader) -> list[StoredCall]:
    """Return the calls in the order of their first sending, each with its latest end."""
    found: dict[tuple[CallKey, str], StoredCall] = {}
    for note in reader.notes(INTENT):
        prompt = from_json(Prompt, note["prompt"])
        key = from_json(CallKey, note["key"])
        found[key, str(note["prompt_id"])] = StoredCall(key=key, prompt=prompt)
    for note in reader.notes(FAILED):
        _end(found, note, failure=f"{note['kind']}: {note['message']}",
             is_pending=note["kind"] == PENDING)  # fmt: skip
    for note in reader.notes(RESPONSE):
        _end(found, note, reply=from_json(Reply, note["reply"]))
    return list(found.values())


def calls_of(reader: RunReader, attempt_id: int) -> list[StoredCall]:
    """Return the calls of one attempt: its prompt, then continuations."""
    return [call for call in stored_calls(reader) if call.key.attempt == attempt_id]


def totals(reader: RunReader) -> CallTotals:
    """Return what the calls of a run have cost so far."""
    last = {int(note["attempt"]): note for note in reader.notes(COST)}
    notes = [note for note in last.values() if note["calls"]]
    names = [str(note["reply"].get("model") or "") for note in reader.notes(RESPONSE)]
    return CallTotals(
        calls=sum(int(note["calls"]) for note in notes),
        tokens=_sum(notes, "tokens"),
        usd=_sum(notes, "usd"),
        call_s=sum(float(note["call_s"]) for note in notes),
        answered_by=tuple(dict.fromkeys(name for name in names if name)),
    )


def _end(
    found: dict[tuple[CallKey, str], StoredCall], note: Mapping[str, Any], **ended: Any
) -> None:
    where = from_json(CallKey, note["key"]), str(note["prompt_id"])
    call = found.get(where)
    if call is not None:
        found[where] = StoredCall(key=call.key, prompt=call.prompt, **ended)


def _sum(notes: Sequence[Mapping[str, Any]], name: str) -> Any:
    total: Any = 0
    for note in notes:
        total = add_known(total, note[name])
    return total
