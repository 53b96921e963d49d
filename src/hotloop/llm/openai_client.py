"""An endpoint that speaks the OpenAI chat protocol, through the `openai` package.

The package sends and authenticates; streaming, retries, deadlines and errors are ours, because they
have to fit the budget. Its own retries are off. Answers always stream, so that one of 20 minutes
lives as long as it shows signs of life.
"""

from __future__ import annotations

import importlib
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hotloop.core.model import CallKey, Prompt, Reply, Usage
from hotloop.errors import EndpointDown, ProviderError, RequestRejected, ToolMissing
from hotloop.llm.answer import Answer, read_usage
from hotloop.llm.cancelling import CallsUnderWay, Token
from hotloop.llm.faults import status_fault
from hotloop.llm.hangup import Line, read_lines
from hotloop.llm.presets import Preset
from hotloop.llm.pricing import cost_usd
from hotloop.llm.retry import Deadline, RetryPolicy, with_retries
from hotloop.llm.secrets import Secret
from hotloop.llm.thinking import split_thinking

CONNECT_S = 10.0
MAX_REPLY_CHARACTERS = 4_000_000
"""About a million tokens, reasoning included: more than any model writes in one answer."""
NO_KEY = "none"
"""Sent where a server of one's own wants no key: the protocol has a place for one."""
_DISPENSABLE = ("temperature", "stream_options", "max_tokens", "max_completion_tokens")
"""Parameters that a call can do without when the endpoint objects to them by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where to ask, and as whom."""

    preset: Preset
    preset_name: str
    model: str
    key: Secret
    url: str | None = None
    """Instead of the preset's; prices are unknown there."""


class OpenAIModel:
    """Asks one model at one endpoint. Safe to call from several threads."""

    paid = True

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        retry: RetryPolicy | None = None,
        idle_s: float | None = None,
        max_reply_characters: int = MAX_REPLY_CHARACTERS,
    ) -> None:
        """Import the package and prepare a client; nothing is sent.

        Raises:
            ToolMissing: the `openai` package is not installed.
        """
        self._endpoint = endpoint
        self._retry = retry or RetryPolicy()
        self._idle_s = endpoint.preset.idle_s if idle_s is None else idle_s
        self._max_characters = max_reply_characters
        self._under_way = CallsUnderWay()
        self._mutex = threading.Lock()
        self._dropped: frozenset[str] = frozenset()
        self._openai = _import_openai()
        self._client = self._make_client()
        at = "" if endpoint.url is None else f"@{endpoint.url}"
        self.name = f"{endpoint.preset_name}:{endpoint.model}{at}"

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r})"

    def cancel(self, key: CallKey) -> None:
        """Give up a call: hang up, so that the endpoint stops writing."""
        self._under_way.cancel(key)

    def close(self) -> None:
        """Give up every call and end connections. Idempotent."""
        self._under_way.close()
        self._client.close()

    def complete(self, prompt: Prompt, *, key: CallKey, deadline_s: float | None) -> Reply:
        """Return the endpoint's answer.

        Raises:
            ProviderError: see its subclasses; the key stands in no message.
        """
        started = time.monotonic()
        deadline = Deadline(deadline_s)
        try:
            with self._under_way.call(key) as token:
                answer, retries = with_retries(
                    lambda: self._send(prompt, deadline, token),
                    deadline=deadline,
                    policy=self._retry,
                    sleep=token.sleep,
                )
        except ProviderError as exc:
            exc.args = tuple(self._name_and_redact(a) for a in exc.args)
            raise
        return self._reply(answer, retries=retries, seconds=time.monotonic() - started)

    def _send(self, prompt: Prompt, deadline: Deadline, token: Token) -> Answer:
        while True:
            body = self._body(prompt)
            try:
                return self._send_once(body, deadline, token)
            except RequestRejected as exc:
                if exc.parameter not in _DISPENSABLE or exc.parameter not in body:
                    raise
                with self._mutex:
                    self._dropped |= {exc.parameter}

    def _send_once(self, body: Mapping[str, Any], deadline: Deadline, token: Token) -> Answer:
        answer = Answer(self._max_characters)
        create = self._client.chat.completions.with_streaming_response.create
        with Line(lambda: create(**body)) as line, token.waking(line.abandon):
            try:
                for text in read_lines(
                    line,
                    token,
                    deadline=deadline,
                    idle_s=self._idle_s,
                    max_line_bytes=2 * self._max_characters,
                ):
                    answer.feed(text)
            except (self._openai.OpenAIError, _transport_errors(self._openai)) as exc:
                raise self._fault(exc) from None
        answer.close()
        return answer

    def _fault(self, exc: Exception) -> ProviderError:
        if isinstance(exc, self._openai.APIStatusError):
            return status_fault(exc.status_code, exc.body, exc.response.headers)
        cause = type(exc.__cause__ or exc).__name__
        return EndpointDown(f"the endpoint cannot be reached, or broke off ({cause})")

    def _body(self, prompt: Prompt) -> dict[str, Any]:
        preset, model = self._endpoint.preset, self._endpoint.model
        body: dict[str, Any] = {
            "model": model,
            "messages": [{"role": m.role.value, "content": m.text} for m in prompt.messages],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if prompt.temperature is not None and preset.allows_temperature(model):
            body["temperature"] = prompt.temperature
        if prompt.max_tokens is not None:
            body[preset.max_tokens_field] = prompt.max_tokens
        return {name: value for name, value in body.items() if name not in self._dropped}

    def _reply(self, answer: Answer, *, retries: int, seconds: float) -> Reply:
        thoughts, text = split_thinking(answer.text, reasoned_apart=bool(answer.reasoning))
        raw = dict(answer.facts)
        if thoughts:
            raw["content"] = answer.text
        usage = read_usage(raw.get("usage"))
        redact = self._endpoint.key.redact
        return Reply(
            text=redact(text),
            reasoning=redact("\n\n".join(filter(None, (answer.reasoning, thoughts)))),
            finish=answer.finish,
            usage=usage,
            cost_usd=self._cost_usd(usage, raw),
            model=str(raw.get("model") or self._endpoint.model),
            seconds=seconds,
            retries=retries,
            raw=self._endpoint.key.redact_json(raw),
        )

    def _cost_usd(self, usage: Usage, raw: Mapping[str, Any]) -> float | None:
        if self._endpoint.url is not None:
            return None
        preset = self._endpoint.preset
        stated = raw["usage"].get("cost") if isinstance(raw.get("usage"), Mapping) else None
        if preset.states_cost and isinstance(stated, int | float) and stated >= 0:
            return float(stated)
        return cost_usd(usage, preset.prices.get(self._endpoint.model))

    def _make_client(self) -> Any:
        # The package would add the user's OpenAI organisation and project to every endpoint.
        foreign = {} if self._endpoint.preset_name == "openai" else self._no_account_headers()
        return self._openai.OpenAI(
            api_key=self._endpoint.key.reveal() or NO_KEY,
            base_url=self._endpoint.url or self._endpoint.preset.url,
            max_retries=0,
            timeout=self._openai.Timeout(self._idle_s, connect=CONNECT_S),
            default_headers=foreign,
        )

    def _no_account_headers(self) -> dict[str, Any]:
        omit = self._openai.Omit()
        return {"OpenAI-Organization": omit, "OpenAI-Project": omit}

    def _name_and_redact(self, part: Any) -> Any:
        if not isinstance(part, str):
            return part
        return f"{self.name}: {self._endpoint.key.redact(part)}"


def _import_openai() -> Any:
    try:
        return importlib.import_module("openai")
    except ImportError as exc:
        raise ToolMissing(
            f"this model needs the openai package ({exc}); pip install 'hotloop[model]'"
        ) from None


def _transport_errors(openai: Any) -> type[Exception]:
    # Version 2 stands on httpx, version 3 on httpx2; errors while reading a body are theirs.
    base = openai.DefaultHttpxClient.__bases__[0]
    transport: Any = sys.modules[base.__module__.partition(".")[0]]
    root: type[Exception] = transport.HTTPError
    return root
