"""How far the values of a problem's inputs go, one by one: what admission found that it bears.

Not here: how far values go in all inputs (`value_profiles.py`), the same of parameters
(`parameter_reach.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from hotloop.worker.parameter_reach import ParameterReach

KEEPS_INPUTS = frozenset({"shipped", "parameters"})
"""Profiles of the file's own inputs."""


class Form(Enum):
    """Which values an input gets that `get_inputs` makes the same under every seed."""

    WIDE = "wide"
    """Those of a constant parameter, with signs and sizes as a trained model may have them."""
    NEAR = "near"
    """Its own times U(0.5, 1.5); N(0, 1) / 2 for 0."""
    BINARY = "binary"
    """Random 0 and 1, or random booleans."""


@dataclass(slots=True)
class InputReach(ParameterReach):
    """The part of `Reach` that is about single inputs. They are named by their places."""

    kept: dict[str, frozenset[int]] = field(default_factory=dict)
    """What keeps the file's own values in a profile, for the sake of which it would be lost."""
    unsigned_inputs: dict[str, frozenset[int]] = field(default_factory=dict)
    """What has no signs in a profile, whose other inputs have."""
    input_names: tuple[str, ...] = ()
    """Of all arguments of forward."""
    constant_inputs: frozenset[int] = frozenset()
    """What is the same under every seed."""
    uniform_inputs: frozenset[int] = frozenset()
    """Those of it that are one floating-point number everywhere."""
    uniform_masks: frozenset[int] = frozenset()
    """Those that are one boolean everywhere."""
    varied: dict[str, dict[int, Form]] = field(default_factory=dict)
    """Which of these get other values in a profile, and of which form."""

    def keeps(self, place: int, profile: str) -> bool:
        """Whether an input has the file's own values in a profile."""
        return profile in KEEPS_INPUTS or place in self.kept.get(profile, ())
