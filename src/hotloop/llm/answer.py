"""Put an answer together from the lines of an event stream (or from one plain JSON body).

What comes in: lines `data: {json}` with a delta each, `data: [DONE]`, comments, blanks. Endpoints
differ in where the reasoning stands (`reasoning_content`, `reasoning`, inline) and in which chunk
carries the usage; all of that is evened out here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hotloop.core.model import Finish, Usage
from hotloop.errors import BadReply, EndpointDown, ReplyTooLong
from hotloop.llm.faults import body_fault

_FINISH = {
    "stop": Finish.STOP,
    "eos": Finish.STOP,
    "length": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "content_filter": Finish.REFUSAL,
    "refusal": Finish.REFUSAL,
}
_OTHER_FIELDS = (b"event:", b"id:", b"retry:")


class Answer:
    """One answer as it grows."""

    def __init__(self, max_characters: int) -> None:
        self._max = max_characters
        self._size = 0
        self._pieces: dict[str, list[str]] = {"text": [], "reasoning": [], "refusal": []}
        self._plain: list[bytes] = []
        self._saw_choice = False
        self._is_done = False
        self._finish_reason: str | None = None
        self._facts: dict[str, Any] = {}

    @property
    def text(self) -> str:
        """The content so far; the words of a refusal where there is nothing else."""
        return self._joined("text") or self._joined("refusal")

    @property
    def reasoning(self) -> str:
        """What came in a field for reasoning."""
        return self._joined("reasoning")

    @property
    def finish(self) -> Finish:
        """Why it ended."""
        if self._pieces["refusal"] and not self._pieces["text"]:
            return Finish.REFUSAL
        return _FINISH.get(self._finish_reason or "", Finish.UNKNOWN)

    @property
    def facts(self) -> Mapping[str, Any]:
        """Ids, model, finish_reason and the usage record, as the endpoint wrote them."""
        return {**self._facts, "finish_reason": self._finish_reason}

    def feed(self, line: bytes) -> None:
        """Take in one line.

        Raises:
            BadReply: it is no JSON, or no chunk of an answer.
            ProviderError: the endpoint reports an error in it.
            ReplyTooLong: the answer is longer than the cap.
        """
        if line.startswith(b"data:"):
            data = line.removeprefix(b"data:").strip()
            if data == b"[DONE]":
                self._is_done = True
            elif data:
                self._take(_parse(data))
        elif line.strip() and not line.startswith((b":", *_OTHER_FIELDS)):
            self._grow(len(line))
            self._plain.append(line)

    def close(self) -> None:
        """Check that the answer is whole.

        Raises:
            BadReply: there is none.
            EndpointDown: the stream ended in the middle of it.
        """
        if self._plain:
            self._take(_parse(b"\n".join(self._plain)))
            self._is_done = True
        if not self._saw_choice:
            raise BadReply("the endpoint sent no answer: its list of choices is empty")
        if self._finish_reason is None and not self._is_done:
            raise EndpointDown("the connection ended in the middle of the answer")
        is_empty = not any(self._pieces.values())
        if is_empty and self.finish in (Finish.STOP, Finish.UNKNOWN):
            raise BadReply("the endpoint sent an empty answer")

    def _joined(self, name: str) -> str:
        text = "".join(self._pieces[name])
        # A character outside the basic plane may come as two escapes in two chunks; a lone half of
        # one cannot be stored.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def _take(self, chunk: Mapping[str, Any]) -> None:
        if chunk.get("error"):
            raise body_fault(chunk)
        for name in ("id", "model", "usage", "system_fingerprint"):
            if chunk.get(name):
                self._facts[name] = chunk[name]
        choices = chunk.get("choices")
        if not isinstance(choices, list):
            raise BadReply(f"expected `choices` in the answer, got {sorted(chunk)[:8]}")
        for choice in choices:
            if not isinstance(choice, Mapping):
                raise BadReply("expected an object in `choices`")
            if choice.get("index") in (0, None):
                self._take_choice(choice)

    def _take_choice(self, choice: Mapping[str, Any]) -> None:
        self._saw_choice = True
        delta = choice.get("delta") or choice.get("message") or {}
        if not isinstance(delta, Mapping):
            raise BadReply("expected an object in `delta`")
        self._add("text", _text_of(delta.get("content")))
        # Some endpoints send the same thought under both names.
        self._add("reasoning", _text_of(delta.get("reasoning_content") or delta.get("reasoning")))
        self._add("refusal", _text_of(delta.get("refusal")))
        if choice.get("finish_reason"):
            self._finish_reason = str(choice["finish_reason"])

    def _add(self, name: str, piece: str) -> None:
        if piece:
            self._grow(len(piece))
            self._pieces[name].append(piece)

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > self._max:
            raise ReplyTooLong(
                f"the answer is longer than {self._max:,} characters; it was cut off and dropped, "
                "set a cap of tokens for this model"
            )


def read_usage(record: Any) -> Usage:
    """Return the counts of a usage record; None for what it does not state."""
    if not isinstance(record, Mapping):
        return Usage()
    prompt_details = record.get("prompt_tokens_details")
    cached = _count(prompt_details, "cached_tokens")
    return Usage(
        prompt=_count(record, "prompt_tokens"),
        # DeepSeek's own name for the same thing.
        cached=_count(record, "prompt_cache_hit_tokens") if cached is None else cached,
        reasoning=_count(record.get("completion_tokens_details"), "reasoning_tokens"),
        completion=_count(record, "completion_tokens"),
    )


def _count(record: Any, name: str) -> int | None:
    value = record.get(name) if isinstance(record, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _text_of(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(p.get("text") or "") for p in content if isinstance(p, Mapping))
    return content if isinstance(content, str) else ""


def _parse(data: bytes) -> Mapping[str, Any]:
    try:
        # NaN and Infinity are no JSON, and the journal cannot hold them.
        value = json.loads(data, parse_constant=lambda _: None)
    except ValueError:
        start = data[:60].decode(errors="replace")
        raise BadReply(f"expected JSON from the endpoint, got {start!r}...") from None
    if not isinstance(value, Mapping):
        raise BadReply(f"expected an object from the endpoint, got {type(value).__name__}")
    return value
