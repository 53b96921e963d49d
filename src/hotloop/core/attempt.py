"""Attempt, Proposal, Written, Outcome, Run: one search and its stations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from hotloop.core.candidate import Candidate
from hotloop.core.space import Space
from hotloop.core.verdict import Evidence, Verdict


class Action(StrEnum):
    """What a proposal asks for. The first three cost no model call."""

    SCHEDULE = "schedule"
    """A point of the generator's space."""
    START = "start"
    """The kernel that the user began with."""
    SWEEP = "sweep"
    """The parent's source with other values of the tunables that it declares: `point`."""
    DRAFT = "draft"
    """A first kernel; `point` may hold `idea`, the number of the idea to carry out, from 0."""
    REPAIR = "repair"
    """The parent, which failed, mended."""
    OPTIMISE = "optimise"
    """The parent, which passed, made faster."""
    REGENERATE = "regenerate"
    """Another design than the parent's, after a plateau."""


FREE_ACTIONS = frozenset({Action.SCHEDULE, Action.START, Action.SWEEP})
"""Actions that cost no model call."""


SHORT_FINAL = "short_final"
"""Option of a run: whether its final tier is the short one whatever its budget."""
SHORT_S = 120.0
"""A run with less wall clock gets the short final tier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a run may spend; whichever ends first. None means unlimited."""

    wall_s: float | None = None
    """Counted from when reference, goldens and baselines are ready; includes the final tier."""
    max_candidates: int | None = None
    """Attempts of every kind."""
    max_calls: int | None = None
    """Attempts that a model was asked for."""
    max_tokens: int | None = None
    """Prompts and answers, reasoning included."""
    max_usd: float | None = None

    @property
    def is_short(self) -> bool:
        """Whether a full final tier would take too much of it."""
        return self.wall_s is not None and self.wall_s < SHORT_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a strategy wants tried next."""

    id: int
    """Unique in the run; `tell` matches by it."""
    action: str
    """An `Action`; a plug-in may have its own."""
    point: Mapping[str, Any] = field(default_factory=dict)
    parents: tuple[int, ...] = ()
    """Attempt ids this one builds on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which prompt an attempt was written from."""

    template: str
    """`first`, `repair`, `optimise`, `regenerate`, ..."""
    template_digest: str
    """Version of the wording: 16 hex digits."""
    prompt_id: str
    sees: str
    """What of earlier attempts the prompt showed: `nothing`, `code`, `execution`, ..."""
    move: str | None = None
    """Key of the one change that the prompt asked for."""
    idea: str | None = None
    """The idea that it was to carry out, in the model's words."""
    example: str | None = None
    """`PROBLEM CANDIDATE` of the verified kernel that it showed; None where it showed none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What writing one attempt cost. Unknown is None, never 0."""

    calls: int = 0
    tokens: int | None = 0
    """Prompt and completion, reasoning included."""
    usd: float | None = 0.0
    call_s: float = 0.0
    """Wall seconds of its model calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a generator made of a proposal: a candidate, or the reason why there is none."""

    candidate: Candidate | None = None
    no_code: Evidence | None = None
    """Why there is no candidate: becomes a NO_CODE verdict. Exactly one of both is set."""
    declared: Space | None = None
    """Tunables that the candidate declares."""
    asked: Asked | None = None
    """None where no model was asked."""
    notes: tuple[str, ...] = ()
    """What was done to read the reply, and what is wrong with its declarations."""
    spent: Spent = Spent()

    def __post_init__(self) -> None:
        if (self.candidate is None) == (self.no_code is None):
            raise ValueError("expected either a candidate or the reason why there is none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a strategy learns of a proposal. `objective` is to be made small."""

    proposal_id: int
    verdict: Verdict
    objective: float | None
    """Kernel milliseconds on a GPU; on `cpu` a static cost without a unit; None unless PASSED."""
    declared: Space | None = None
    """Tunables that the candidate declares."""


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
    declared: Space | None = None
    """Tunables that the candidate declares."""
    asked: Asked | None = None
    """The prompt it was written from; None where no model was asked."""
    notes: tuple[str, ...] = ()
    """What was done to read the reply."""


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

    @property
    def has_short_final(self) -> bool:
        """Whether its final tier is the short one: little time, or one problem of many."""
        return self.budget.is_short or bool(self.options.get(SHORT_FINAL))
