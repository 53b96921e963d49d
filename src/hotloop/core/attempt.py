"""Attempt, Proposal, Outcome, Run: one search and its stations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hotloop.core.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a run may spend; whichever ends first. None means unlimited."""

    wall_s: float | None = None
    """Counted from when reference, goldens and baselines are ready; includes the final tier."""
    max_candidates: int | None = None
    max_tokens: int | None = None
    max_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a strategy wants tried next."""

    id: int
    """Unique in the run; `tell` matches by it."""
    action: str
    """`schedule` (a point of a generator's space); a model's actions come with the model."""
    point: Mapping[str, Any] = field(default_factory=dict)
    parents: tuple[int, ...] = ()
    """Attempt ids this one builds on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a strategy learns of a proposal. `objective` is to be made small."""

    proposal_id: int
    verdict: Verdict
    objective: float | None
    """Kernel milliseconds on a GPU; on `cpu` a static cost without a unit; None unless PASSED."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One station of the search, as the journal keeps it."""

    id: int
    """The proposal's id."""
    action: str
    point: Mapping[str, Any]
    parents: tuple[int, ...]
    generator: str
    candidate_id: str | None
    """None while it is being written, or when there was no code."""
    verdict: Verdict | None
    """None while it is pending."""
    objective: float | None
    started_s: float
    """Seconds of budget spent when it was proposed."""
    finished_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """What a run was asked to do; stored once, checked on resume."""

    problem_id: str
    problem_name: str
    generator: str
    strategy: str
    device: str
    language: str
    budget: Budget
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)
