"""Untimed calls: how the judge asks for one, and what comes back."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hotloop.worker import claims

AHEAD_BITS = 25
"""Of seconds: up to a year at a time."""
MAX_DRAWN = 4
"""Sets that calls are spread over, as timed ones are."""


@dataclass(frozen=True, slots=True)
class Untimed:
    """What an untimed forward meets. All of them are watched, and alike (`observation.py`)."""

    fresh: str = "nan"
    """What memory holds that nobody wrote: `nan`, `numbers` or `zeros`."""
    looks: bool = False
    """Whether values are compared, to tell where outputs come from."""
    left_out: bool = False
    """Whether launches do nothing."""
    bare: bool = False
    """Whether no mode is on; only how much torch does and what is launched is told then."""

    def request(self, index: int) -> dict[str, Any]:
        """Return the request for a forward on set `index`."""
        told = dataclasses.asdict(self)
        return {"op": "call", "set": index, "timed": False, "ahead_s": draw_ahead(), **told}


@dataclass(frozen=True, slots=True)
class WatchedCall:
    """What a process says of an untimed forward."""

    outputs: list[dict[str, Any]]
    seen: claims.Observed | None = None
    """None of a bare call, and of a candidate in a `.cu` file, with no code around its kernels."""
    work: int = 0
    """Elements of the operands of torch's operations with arithmetic."""
    started: int = 0
    """Threads and processes that began in it."""
    launches: int = 0
    """Kernels that it launched."""

    @classmethod
    def read(cls, answer: Mapping[str, Any], *, has_python: bool, bare: bool) -> WatchedCall:
        """Read an answer to an untimed `call`.

        Raises:
            MalformedAnswer: it is none.
        """
        outputs = claims.objects(answer, "outputs")
        if not has_python:
            return cls(outputs)  # of no launches, which nobody compares
        seen = None if bare else claims.Observed.read(answer)
        work, started = claims.number(answer, "work"), claims.number(answer, "started")
        launches = int(claims.number(answer, "launches"))
        return cls(outputs, seen, int(work), int(started), launches)


def draw_ahead() -> float:
    """Return how many seconds pass, to the candidate's clocks, before a call: often none."""
    return secrets.choice((0.0, 2.0 ** (secrets.randbelow(AHEAD_BITS) + 1), 2.0**AHEAD_BITS))


def draw_set(n_sets: int, last: int | None = None) -> int:
    """Return the set that a call takes: by its address no call is told from another.

    Half the calls take that of the last call, which has other values by then: what is kept of one
    call for the next shows there alone, and of 14 sets all drawn anew 1 run in 56 repeats none.
    """
    if last is not None and secrets.randbelow(2):
        return last
    return secrets.randbelow(min(MAX_DRAWN, n_sets))


def draw_other_set(n_sets: int, index: int) -> int:
    """Return another set than `index`, where there are two."""
    others = [i for i in range(min(MAX_DRAWN, n_sets)) if i != index]
    return secrets.choice(others) if others else index


def draw_bare(repeats: int) -> list[bool]:
    """Return which of some repeated calls are bare: of two or more at least one is, one is not."""
    drawn = [bool(i % 2) for i in range(repeats)]
    secrets.SystemRandom().shuffle(drawn)
    return drawn


def draw_fresh() -> str:
    """Return what a repeated call finds in fresh memory."""
    return secrets.choice(("nan", "numbers"))
