"""What the user wrote behind `--model`, as a model.

builtin                 no model: the built-in generator
PRESET:NAME[@URL]       an endpoint; split at the first `:` and the last `@`
dir:PATH                a folder that somebody answers
replay:FILE             a recording
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from hotloop.core.model import Model
from hotloop.errors import ConfigError
from hotloop.llm.directory import DirectoryModel
from hotloop.llm.openai_client import Endpoint, OpenAIModel
from hotloop.llm.presets import Preset, find_preset
from hotloop.llm.replay import ReplayModel
from hotloop.llm.retry import RetryPolicy
from hotloop.llm.secrets import Secret


class SpecKind(StrEnum):
    """The kinds of models."""

    BUILTIN = "builtin"
    ENDPOINT = "endpoint"
    DIRECTORY = "dir"
    REPLAY = "replay"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A parsed model spec."""

    kind: SpecKind
    preset: str = ""
    name: str = ""
    """The model's name at its endpoint."""
    url: str | None = None
    path: Path | None = None
    """Of a folder or a recording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """What opening a model needs besides its spec."""

    environ: Mapping[str, str] = field(repr=False)
    """Where the keys are: the environment, or the configuration file's keys by the same names."""
    wait: bool = True
    """False: a folder's missing reply is `Pending` at once."""
    retry: RetryPolicy | None = None
    idle_s: float | None = None
    """Instead of the preset's."""


def parse_spec(text: str) -> ModelSpec:
    """Return the parsed spec; nothing is opened.

    Raises:
        ConfigError: it has another form, or an unknown preset.
    """
    head, colon, rest = text.partition(":")
    if text == SpecKind.BUILTIN:
        return ModelSpec(kind=SpecKind.BUILTIN)
    if not colon or not rest:
        raise ConfigError(
            f"expected builtin, PRESET:NAME[@URL], dir:PATH or replay:FILE, got {text!r}"
        )
    if head == SpecKind.DIRECTORY:
        return ModelSpec(kind=SpecKind.DIRECTORY, path=Path(rest))
    if head == SpecKind.REPLAY:
        return ModelSpec(kind=SpecKind.REPLAY, path=Path(rest))
    find_preset(head)
    before, at, url = rest.rpartition("@")
    name = before if at else rest
    if not name:
        raise ConfigError(f"expected {head}:NAME[@URL], got no model name")
    if at:
        _check_url(url)
    return ModelSpec(kind=SpecKind.ENDPOINT, preset=head, name=name, url=url if at else None)


def open_model(spec: ModelSpec, options: ModelOptions) -> Model:
    """Return the model of a spec. Nothing is sent.

    Raises:
        ConfigError: a key is missing, or a folder or recording cannot be used.
        ToolMissing: a package that the model needs is not installed.
        ValueError: the spec is `builtin`, which is no model.
    """
    if spec.kind is SpecKind.ENDPOINT:
        preset = find_preset(spec.preset)
        endpoint = Endpoint(
            preset=preset,
            preset_name=spec.preset,
            model=spec.name,
            key=find_key(preset, options.environ),
            url=spec.url,
        )
        return OpenAIModel(endpoint, retry=options.retry, idle_s=options.idle_s)
    if spec.path is None:
        raise ValueError(f"expected the spec of a model, got {spec.kind.value}")
    if spec.kind is SpecKind.DIRECTORY:
        return DirectoryModel(spec.path, wait=options.wait)
    return ReplayModel(spec.path)


def find_key(preset: Preset, environ: Mapping[str, str]) -> Secret:
    """Return the key of a preset; an empty one where none is needed.

    Raises:
        ConfigError: it is missing or malformed; names the variable, never the value.
    """
    value = environ.get(preset.key, "").strip()
    if not value and not preset.key_optional:
        raise ConfigError(
            f"this model needs a key in the environment variable {preset.key}, which is not set; "
            "set it, or use --model builtin, which needs none"
        )
    if not (value.isascii() and value.isprintable()) or " " in value:
        raise ConfigError(f"{preset.key} holds characters that no key has; set it anew")
    return Secret(value)


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_plain = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_plain = False
    if not is_plain or parts.query:
        # Not shown: it may be the tail of a URL with a password before its @, or hold a key.
        raise ConfigError(
            "expected a URL like http://host:8000/v1 after the last @ of the model spec; a name "
            "that has an @ itself needs the URL too, and a URL takes no user, password or query"
        )
