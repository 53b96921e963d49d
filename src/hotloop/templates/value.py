"""Expressions under construction: where a value is computed, its text, and free names."""

from __future__ import annotations

import keyword
from dataclasses import dataclass
from enum import IntFlag

from hotloop.templates.operators import ATOM


class Level(IntFlag):
    """How often a value is computed; the union of two is where they can be combined."""

    PROGRAM = 0
    ROW = 1
    COLUMN = 2
    ELEMENT = 3


@dataclass(frozen=True, slots=True)
class Value:
    """An expression: its text, and what its users must know about it."""

    text: str
    kind: str
    level: Level
    binding: int = ATOM
    coefficient: float = 1.0
    """A factor not yet in the text; floats only."""


class Names:
    """Identifiers of one generated file; hands out each at most once."""

    def __init__(self, reserved: frozenset[str]) -> None:
        self._taken = set(reserved)

    def fresh(self, base: str) -> str:
        """Return `base`, or `base` with a number where it is taken or a keyword."""
        name, number = base, 1
        while name in self._taken or keyword.iskeyword(name):
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name
