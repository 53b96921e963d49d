"""Events: what the engine tells whoever watches (screen, plain log, journal)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened.

    Kinds: `setup` (info: ProblemInfo), `asking` (attempt: a model call for it starts; is_new: no
    earlier session began it), `started` (attempt: it was written; without a candidate there is no
    code in it), `building`, `verifying` (attempt), `finished` (attempt), `best` (attempt), `final`
    (verdict, attempt), `budget` (spent_s, limit_s, spent_tokens, spent_usd; what is unknown is
    None), `warning` (message), `waiting` (waiting: the files to be answered from outside; nothing
    else is left to do), `stopped` (reason, message or None, waiting).
    """

    kind: str
    payload: Mapping[str, Any] = field(default_factory=dict)


Listener = Callable[[Event], None]
