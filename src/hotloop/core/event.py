"""Events: what the engine tells whoever watches (screen, plain log, journal)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened.

    Kinds: `setup` (info: ProblemInfo), `started` (attempt), `building`, `verifying` (attempt),
    `finished` (attempt), `best` (attempt), `final` (verdict, attempt), `budget` (spent_s, limit_s),
    `warning` (message), `stopped` (reason, message or None).
    """

    kind: str
    payload: Mapping[str, Any] = field(default_factory=dict)


Listener = Callable[[Event], None]
