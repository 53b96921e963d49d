"""Presets: where a provider is, which variable holds its key, what its models cost.

The facts stand in `presets.toml`, beside this file, with the date on which they were read.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources

from hotloop.core.record import from_json
from hotloop.errors import ConfigError
from hotloop.llm.pricing import Price

DEFAULT_IDLE_S = 120.0
"""Endpoints that show their reasoning, or send keep-alive comments, are never silent that long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """One provider."""

    url: str
    key: str
    """The environment variable with the key."""
    key_optional: bool = False
    no_temperature: tuple[str, ...] = ()
    max_tokens_field: str = "max_tokens"
    idle_s: float = DEFAULT_IDLE_S
    states_cost: bool = False
    prices: Mapping[str, Price] = field(default_factory=dict)

    def allows_temperature(self, model: str) -> bool:
        """Whether a model takes a temperature."""
        return not any(fnmatchcase(model, pattern) for pattern in self.no_temperature)


@cache
def presets() -> Mapping[str, Preset]:
    """Return all presets by name."""
    text = resources.files(__package__).joinpath("presets.toml").read_text(encoding="utf-8")
    return {name: from_json(Preset, entry) for name, entry in tomllib.loads(text).items()}


def find_preset(name: str) -> Preset:
    """Return the preset of a name.

    Raises:
        ConfigError: there is none; lists what exists.
    """
    found = presets().get(name)
    if found is None:
        raise ConfigError(
            f"there is no model preset {name!r}; known: {', '.join(sorted(presets()))}; other "
            "kinds: builtin, dir:PATH, replay:FILE; for any other endpoint that speaks the "
            "protocol use openai:NAME@URL"
        )
    return found
