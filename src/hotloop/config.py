"""What the user asked of `optimize`, checked once and free of defaults from then on.

The command line, the configuration file and the library all end in `Settings`; defaults stand here
and nowhere else. It reads no environment variable and no file, and looks for no GPU: callers say
what they found.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from hotloop.core.attempt import Budget
from hotloop.core.units import parse_duration_s
from hotloop.errors import ConfigError

DEFAULT_BUDGET_S = 15 * 60.0
"""The time NVIDIA's DeepSeek-R1 experiment gave one attention kernel."""

DEFAULT_LANES = 2
DEFAULT_CALLS = 4
"""Model calls at a time. At a fixed number of evaluations a width of 2 to 4 is best, and the rest
of the budget is better spent on depth (AdaExplore and KernelArc's ablations)."""
DEFAULT_MAX_USD = 5.0
"""Of one run with a model that costs money, unless the user says otherwise."""


class Settings(BaseModel):
    """One run's settings; every field has its final value."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    out: Path
    """The run folder; resumed when it exists."""
    device: Literal["cuda", "cpu"]
    budget_s: float = Field(default=DEFAULT_BUDGET_S, gt=0)
    """Wall seconds from the loaded problem to the end of the final tier. Also as text: `15m`."""
    max_candidates: int | None = Field(default=None, ge=1)
    """None: as many as the time allows."""
    max_calls: int | None = Field(default=None, ge=1)
    """None: as many as the time allows."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Prompts and answers of all calls, reasoning included; None: no limit."""
    max_usd: float | None = Field(default=None, gt=0)
    """Of all calls; None: no limit."""
    model: str | None = None
    """A model spec; None is the built-in generator."""
    sees: Literal["nothing", "code", "execution", "performance", "memory"] = "memory"
    """What of earlier attempts a prompt shows; each level has all of those before it."""
    strategy: str = "tune"
    """A name in `hotloop.strategies`, or a path `pkg.mod:Attr`."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Of the strategy; the verifier's seeds are its own and secret."""
    language: Literal["triton", "gluon", "cuda"] = "triton"
    min_isolation: Literal["T0", "T1", "T2"] = "T1"
    """Refuse to run candidates in anything weaker."""
    parallel: int = Field(default=DEFAULT_LANES, ge=1, le=64)
    """Model calls at a time; with the built-in generator, builds beside a verification."""

    @field_validator("budget_s", mode="before")
    @classmethod
    def _parse_budget(cls, value: Any) -> Any:
        return parse_duration_s(value) if isinstance(value, str) else value

    @property
    def budget(self) -> Budget:
        """The limits of the run."""
        return Budget(
            wall_s=self.budget_s,
            max_candidates=self.max_candidates,
            max_calls=self.max_calls,
            max_tokens=self.max_tokens,
            max_usd=self.max_usd,
        )


def resolve(options: Mapping[str, Any], *, has_gpu: bool) -> Settings:
    """Return the settings for the options that were given; None means not given.

    `device` may be `auto`: a GPU where there is one.

    Raises:
        ConfigError: an option is unknown, missing or out of range; one line for all of them.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if given.get("device", "auto") == "auto":
        given["device"] = "cuda" if has_gpu else "cpu"
    try:
        return Settings.model_validate(given)
    except ValidationError as exc:
        raise ConfigError("; ".join(_describe(error) for error in exc.errors())) from None


def _describe(error: Any) -> str:
    name = ".".join(str(part) for part in error["loc"]) or "settings"
    if error["type"] == "missing":
        return f"{name} is missing"
    if error["type"] == "extra_forbidden":
        return f"unknown option {name!r}; known: {', '.join(Settings.model_fields)}"
    if error["type"] == "literal_error":
        return f"{name}: expected {error['ctx']['expected']}, got {error['input']!r}"
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{name}: {message[0].lower()}{message[1:]}, got {error['input']!r}"
