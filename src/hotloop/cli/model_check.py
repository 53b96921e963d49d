"""`hotloop doctor --model SPEC`: whether a model can be asked, found out with one tiny call.

A folder and a recording are looked at, not asked. What goes wrong is a finding with what to do
about it, not an error; only a spec that cannot be read is one. No key is ever shown: messages come
from `hotloop.llm`, which takes them out.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hotloop.cli.wording import known_tokens, known_usd, plain
from hotloop.core.model import CallKey, Finish, Message, Prompt, Reply, Role
from hotloop.errors import (
    AuthError,
    BadReply,
    ConfigError,
    DeadlinePassed,
    EndpointDown,
    HotloopError,
    RateLimited,
    RequestRejected,
)
from hotloop.llm.presets import Preset, find_preset
from hotloop.llm.recording import read_recording
from hotloop.llm.retry import RetryPolicy
from hotloop.llm.spec import ModelOptions, ModelSpec, SpecKind, open_model, parse_spec

QUESTION = "Answer with the single word OK."
MAX_TOKENS = 512
"""One word, after the thoughts of a reasoning model."""
DEADLINE_S = 60.0
RETRY = RetryPolicy(max_retries=2, max_bad_replies=0)
UNKNOWN = "unknown"
_KEY = CallKey(problem_id="doctor", attempt=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReport:
    """What was found out about one model."""

    model: str
    ok: bool
    facts: Mapping[str, Any]
    """Name and value, in the order to be shown; JSON values."""
    problem: str | None = None
    """Why it cannot be used, in one line; None when it can."""
    mend: str | None = None
    """What to do about it."""
    exit_code: int = 0
    """2 where the input is wrong, 3 where the endpoint or the machine is at fault."""


def check_model(
    text: str, environ: Mapping[str, str], *, deadline_s: float = DEADLINE_S
) -> ModelReport:
    """Look at the model of a spec; an endpoint is asked one question.

    Raises:
        ConfigError: the spec has no known form, or an unknown preset.
    """
    spec = parse_spec(text)
    if spec.kind is SpecKind.BUILTIN:
        kind = {"kind": "the built-in generator: no model, nothing to ask"}
        return ModelReport(model=text, ok=True, facts=kind)
    try:
        if spec.kind is SpecKind.DIRECTORY:
            return _folder(text, spec, environ)
        if spec.kind is SpecKind.REPLAY:
            return _recording(text, spec)
        return _endpoint(text, spec, environ, deadline_s)
    except HotloopError as exc:
        facts = {"reachable": False} if spec.kind is SpecKind.ENDPOINT else {}
        return ModelReport(
            model=text,
            ok=False,
            facts=facts,
            problem=plain(str(exc), limit=400),
            mend=_mend(exc),
            exit_code=exc.exit_code,
        )


def report_text(report: ModelReport) -> str:
    """Return a report in lines, one a fact."""
    facts = {"model": report.model, **report.facts}
    width = max(len(name) for name in facts)
    lines = [f"{name:{width}}  {_shown(value)}" for name, value in facts.items()]
    if report.ok:
        return "\n".join([*lines, "this model can be used"])
    lines.append(f"{'problem':{width}}  {report.problem}")
    lines += [f"{'':{width}}  -> {report.mend}"] if report.mend else []
    return "\n".join([*lines, "this model cannot be used yet"])


def _endpoint(
    text: str, spec: ModelSpec, environ: Mapping[str, str], deadline_s: float
) -> ModelReport:
    model = open_model(spec, ModelOptions(environ=environ, retry=RETRY))
    prompt = Prompt(messages=(Message(role=Role.USER, text=QUESTION),), max_tokens=MAX_TOKENS)
    try:
        reply = model.complete(prompt, key=_KEY, deadline_s=deadline_s)
    finally:
        model.close()
    facts = {
        "reachable": True,
        "answered by": plain(reply.model) or UNKNOWN,
        "answer": _answer(reply),
        "seconds": round(reply.seconds, 1),
        "tokens": _tokens(reply),
        "cost of this call": known_usd(reply.cost_usd),
        "price": _price(spec, find_preset(spec.preset)),
        "reasoning": "seen apart from the answer" if reply.reasoning else "not seen",
    }
    return ModelReport(model=text, ok=True, facts=facts)


def _folder(text: str, spec: ModelSpec, environ: Mapping[str, str]) -> ModelReport:
    open_model(spec, ModelOptions(environ=environ)).close()
    assert spec.path is not None, "the spec of a folder has a path"
    try:
        with tempfile.TemporaryFile(dir=spec.path):
            pass
    except OSError as exc:
        raise ConfigError(f"{text}: expected a folder that can be written: {exc.strerror}") from exc
    facts = {
        "folder": f"{spec.path} can be written",
        "how to answer": "each ID.prompt.md is answered by ID.reply.md, written under another "
        "name and renamed; model.txt may say in one line who answers",
    }
    return ModelReport(model=text, ok=True, facts=facts)


def _recording(text: str, spec: ModelSpec) -> ModelReport:
    assert spec.path is not None, "the spec of a recording has a path"
    recording = read_recording(spec.path)
    names = [f"{plain(name)} ({id_})" for id_, name in sorted(recording.problems.items())]
    facts = {
        "answered by": plain(recording.model) or UNKNOWN,
        "calls": len(recording.calls),
        "problems": names,
    }
    return ModelReport(model=text, ok=True, facts=facts)


def _answer(reply: Reply) -> str:
    if reply.text.strip():
        return plain(reply.text, limit=60)
    if reply.finish is Finish.LENGTH:
        return f"none within {MAX_TOKENS} tokens: it was still thinking"
    return "empty"


def _tokens(reply: Reply) -> dict[str, str]:
    usage = reply.usage
    counts = {
        "prompt": usage.prompt,
        "cached": usage.cached,
        "reasoning": usage.reasoning,
        "completion": usage.completion,
    }
    return {name: known_tokens(count) for name, count in counts.items()}


def _price(spec: ModelSpec, preset: Preset) -> str:
    unknown = f"{UNKNOWN}: --max-usd cannot be held; limit tokens with --max-tokens"
    if spec.url is not None:
        return unknown
    if preset.states_cost:
        return "stated by the endpoint with each answer"
    price = preset.prices.get(spec.name)
    if price is None:
        return unknown
    return f"${price.prompt:g} in, ${price.completion:g} out a million tokens, as of {price.as_of}"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name} {count}" for name, count in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value)


def _mend(exc: HotloopError) -> str | None:
    """Return what to do where the message itself does not say."""
    known: Mapping[type[HotloopError], str] = {
        AuthError: "set the key's environment variable anew; `hotloop doctor` lists their names",
        RateLimited: "wait, then try again; during a run hotloop waits by itself",
        RequestRejected: "check the model's name: not every model speaks the chat protocol",
        EndpointDown: "check that the server runs and that the URL is right: PRESET:NAME@URL",
        BadReply: "check the URL: it should end where /chat/completions begins, mostly in /v1",
        DeadlinePassed: "try again; a server of your own may still be loading the model",
    }
    return known.get(type(exc))
