"""An answer that was cut off is continued once; one that never began is asked for again, shorter.

A wrapper around any model. Each part is a call of its own, with its own key, so that a journal
below never pays for one twice.
"""

from __future__ import annotations

from dataclasses import replace

from hotloop.core.model import (
    CallKey,
    Finish,
    Message,
    Model,
    Prompt,
    Reply,
    Role,
    add_known,
)
from hotloop.errors import ProviderError
from hotloop.llm.retry import Deadline

CONTINUE = (
    "Your answer was cut off at its length limit. Go on exactly where it stopped, with the next "
    "character. Repeat nothing, explain nothing, open no new code block for code that was begun."
)
BE_BRIEF = (
    "An earlier answer to this was cut off at its length limit before any answer was written. "
    "Think briefly, then write the answer itself."
)
_MAX_OVERLAP_CHARACTERS = 400
_MIN_OVERLAP_CHARACTERS = 12
"""Shorter repetitions are chance: a line of blanks and a bracket."""


class ContinuingModel:
    """Asks a model a second time when its answer was cut off."""

    def __init__(self, inner: Model) -> None:
        self._inner = inner
        self.name = inner.name
        self.paid = inner.paid

    def __repr__(self) -> str:
        return f"ContinuingModel({self._inner!r})"

    def cancel(self, key: CallKey) -> None:
        """Give up a call; when its second part is under way, the first one remains."""
        self._inner.cancel(key)
        self._inner.cancel(replace(key, part=key.part + 1))

    def close(self) -> None:
        """Give up every call and end connections. Idempotent."""
        self._inner.close()

    def complete(self, prompt: Prompt, *, key: CallKey, deadline_s: float | None) -> Reply:
        """Return the whole answer; still `length` when its second part was cut off too.

        Raises:
            ProviderError: the first call failed. A failing second one leaves the first part.
        """
        deadline = Deadline(deadline_s)
        first = self._inner.complete(prompt, key=key, deadline_s=deadline_s)
        if first.finish is not Finish.LENGTH or deadline.has_passed():
            return first
        again = follow_up(prompt, first)
        try:
            second = self._inner.complete(
                again, key=replace(key, part=key.part + 1), deadline_s=deadline.remaining_s()
            )
        except ProviderError as exc:
            # The first part is paid for, and its `finish` says that it is incomplete.
            return replace(first, raw={**first.raw, "continuation_failed": str(exc)})
        return join_replies(first, second)


def follow_up(prompt: Prompt, cut: Reply) -> Prompt:
    """Return the prompt that asks for the rest of a cut answer, or for a shorter one."""
    *before, last = prompt.messages
    if not cut.text.strip():
        brief = Message(role=Role.USER, text=f"{last.text}\n\n{BE_BRIEF}")
        return replace(prompt, messages=(*before, brief))
    so_far = Message(role=Role.ASSISTANT, text=cut.text)
    return replace(
        prompt, messages=(*prompt.messages, so_far, Message(role=Role.USER, text=CONTINUE))
    )


def join_replies(first: Reply, second: Reply) -> Reply:
    """Return two parts as one reply: texts joined, counts and costs added."""
    return replace(
        second,
        text=join_texts(first.text, second.text),
        reasoning="\n\n".join(filter(None, (first.reasoning, second.reasoning))),
        usage=first.usage.plus(second.usage),
        cost_usd=add_known(first.cost_usd, second.cost_usd),
        seconds=first.seconds + second.seconds,
        retries=first.retries + second.retries,
        uncertain=first.uncertain or second.uncertain,
        raw={"parts": [first.raw, second.raw]},
    )


def join_texts(first: str, second: str) -> str:
    """Return a text and its continuation as one.

    Models repeat themselves here: the end of what they wrote, the opening of the code block, or
    all of it from the start. The repetition is dropped.
    """
    if first.count("```") % 2 == 1 and second.lstrip().startswith("```"):
        _, _, code = second.lstrip().partition("\n")
        begun = first.rpartition("```")[2].partition("\n")[2]
        if begun.strip() and code.startswith(begun[:_MAX_OVERLAP_CHARACTERS]):
            return second
        second = code
    longest = min(_MAX_OVERLAP_CHARACTERS, len(first), len(second))
    for size in range(longest, _MIN_OVERLAP_CHARACTERS - 1, -1):
        if first.endswith(second[:size]):
            return first + second[size:]
    return first + second
