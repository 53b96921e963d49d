"""An example in a prompt: a verified kernel of another problem.

Where examples come from is not the prompts' business (`hotloop.retrieval`). They are code that a
model may have written, so they are fenced like any other untrusted text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.verdict import Tier
from hotloop.prompts import untrusted
from hotloop.prompts.task import shown_source

MAX_REFERENCE_CHARS = 3_000
"""A longer reference is left out; the operators say what the kernel computes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A kernel that passed the checks of another problem."""

    problem: Problem
    candidate: Candidate
    operators: tuple[str, ...]
    """What the other problem computes, by operator."""
    tier: Tier
    """The highest tier that it passed; at the fast one its time is a first look."""
    speedup: tuple[str, float] | None
    """The fastest PyTorch baseline there and its time over the kernel's; None where nothing was
    timed."""

    @property
    def mark(self) -> str:
        """`PROBLEM CANDIDATE`: what the attempt says of it."""
        return f"{self.problem.name} {self.candidate.id}"


class Examples(Protocol):
    """Finds examples."""

    def find(self, info: ProblemInfo, shown: frozenset[str]) -> Example | None:
        """Return the example that fits a problem best; None where none does.

        Args:
            info: the problem that a kernel is to be written for.
            shown: marks of those that earlier prompts of the run had.
        """
        ...


def example_values(example: Example | None) -> dict[str, Any] | None:
    """Return what the template shows of an example."""
    if example is None:
        return None
    reference = shown_source(example.problem)  # a problem's own words stay with it
    return {
        "operators": untrusted.one_line(", ".join(example.operators), 200),
        "speedup": _told_speedup(example),
        "reference": (
            untrusted.code(reference, "python") if len(reference) <= MAX_REFERENCE_CHARS else None
        ),
        "sources": [
            untrusted.code(source.text, "python" if source.path.endswith(".py") else "cuda")
            for source in example.candidate.sources
        ],
    }


def _told_speedup(example: Example) -> str:
    if example.speedup is None:
        return "it passed the checks there"
    name, ratio = example.speedup
    first = "" if example.tier is Tier.FINAL else ", by a first timing"
    return (
        f"it passed the checks there and ran {ratio:.2f} times as fast as PyTorch's {name}{first}"
    )
