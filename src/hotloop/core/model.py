"""Prompt, Reply, Model: one question to a language model and its answer.

What a model is (an endpoint, a folder that somebody answers, a recording) is known to `hotloop.llm`
only. Counts of tokens and prices that nobody stated are None: unknown is never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from hotloop.core.record import digest


class Role(StrEnum):
    """Who speaks."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn of a conversation."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What a model is asked. Illegal prompts cannot be built."""

    messages: tuple[Message, ...]
    """At least one; the last one is the user's."""
    max_tokens: int | None = None
    """Cap of the answer, reasoning included; None leaves it to the endpoint."""
    temperature: float | None = None
    """Left out where the model forbids it; None leaves it to the endpoint."""

    def __post_init__(self) -> None:
        if not self.messages or self.messages[-1].role is not Role.USER:
            raise ValueError("expected a prompt whose last message is the user's")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ValueError(f"expected max_tokens from 1, got {self.max_tokens}")

    @property
    def id(self) -> str:
        """The hash of the content, 16 hex digits."""
        return digest(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallKey:
    """Which call of a run or suite this is: what a journal and a recording find it by."""

    problem_id: str
    attempt: int
    sample: int = 0
    part: int = 0
    """0: the first answer; 1: its continuation, or the answer to a second asking."""

    @property
    def text(self) -> str:
        """The key in a few characters that are safe in a file name."""
        safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in self.problem_id)
        part = f"-p{self.part}" if self.part else ""
        return f"{safe.lstrip('.')}-a{self.attempt:04d}-s{self.sample}{part}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call, as the endpoint counted them; None where it did not say."""

    prompt: int | None = None
    """All input tokens, cached ones included."""
    cached: int | None = None
    """The part of `prompt` that came from the endpoint's cache."""
    reasoning: int | None = None
    """The part of `completion` that is reasoning."""
    completion: int | None = None
    """All output tokens, reasoning included."""

    def plus(self, other: Usage) -> Usage:
        """Return the sum; unknown plus anything is unknown."""
        return Usage(
            prompt=add_known(self.prompt, other.prompt),
            cached=add_known(self.cached, other.cached),
            reasoning=add_known(self.reasoning, other.reasoning),
            completion=add_known(self.completion, other.completion),
        )


class Finish(StrEnum):
    """Why an answer ended."""

    STOP = "stop"
    LENGTH = "length"
    """Cut off: the answer is incomplete."""
    REFUSAL = "refusal"
    """The model, or a filter before or behind it, declined."""
    UNKNOWN = "unknown"
    """The source does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer."""

    text: str
    """The answer, without the reasoning."""
    reasoning: str = ""
    """What the model thought aloud; empty where it cannot be seen."""
    finish: Finish = Finish.UNKNOWN
    usage: Usage = Usage()
    cost_usd: float | None = None
    """None: the price, or one of the counts it needs, is unknown."""
    model: str = ""
    """Who answered, as the source names it."""
    seconds: float = 0.0
    """Wall clock of the call, waiting and retries included."""
    retries: int = 0
    """Failed sendings before this answer. What they may have cost is not in `usage`."""
    uncertain: bool = False
    """The call was sent before, and that sending may have been paid too."""
    raw: Mapping[str, Any] = field(default_factory=dict)
    """What the source said besides: ids, its own usage record, the text before it was split."""


class Model(Protocol):
    """Completes a prompt. Safe to call from several threads, each with its own key."""

    name: str
    """As the user wrote it, without a secret: `deepseek:deepseek-v4-pro`, `dir:answers`."""
    paid: bool
    """Whether asking again may cost money. An unpaid call is repeated without a mark."""

    def complete(self, prompt: Prompt, *, key: CallKey, deadline_s: float | None) -> Reply:
        """Return the answer; `deadline_s` is in seconds from now, None waits without end.

        Raises:
            ProviderError: there is no answer, and asking again now would not help.
            Pending: the answer comes from outside and the caller did not want to wait.
        """

    def cancel(self, key: CallKey) -> None:
        """Give up the call of this key: its `complete` raises `Cancelled`. Else do nothing."""

    def close(self) -> None:
        """Give up every call and end connections. Idempotent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallState:
    """What a journal knows of one call."""

    sent: int = 0
    """Sendings that nothing answered: no reply, no failure, no return to the queue."""
    reply: Reply | None = None


class CallJournal(Protocol):
    """Remembers calls: a finished one is never paid twice. Returns when it is durable."""

    def state(self, key: CallKey, prompt_id: str) -> CallState:
        """Return what is known of the call of this key with this prompt."""

    def prompt(self, key: CallKey) -> Prompt | None:
        """Return the prompt that was last sent under this key; None when none was."""

    def intend(self, key: CallKey, prompt: Prompt) -> None:
        """Record that the call is about to be sent."""

    def respond(self, key: CallKey, prompt_id: str, reply: Reply) -> None:
        """Record its answer."""

    def fail(self, key: CallKey, prompt_id: str, error: Exception) -> None:
        """Record that it failed, or is awaited from outside: it is settled without an answer."""


def add_known(a: float | None, b: float | None) -> Any:
    """Return the sum of two numbers; None when one of them is unknown."""
    return None if a is None or b is None else a + b
