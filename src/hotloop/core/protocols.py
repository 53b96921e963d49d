"""The contracts between the engine and what is wired into it.

The engine knows no torch, no network and no disk: it sees these protocols. Implementations do not
inherit them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from hotloop.core.attempt import Attempt, Outcome, Proposal, RunSpec
from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.space import Space
from hotloop.core.verdict import Tier, Verdict


class Generator(Protocol):
    """Proposes candidates: from templates, or by asking a model."""

    name: str

    def space(self, info: ProblemInfo) -> Space:
        """Return the schedules it offers for a problem.

        Raises:
            UnsupportedOp: no kernel family covers the problem.
        """

    def generate(self, info: ProblemInfo, proposal: Proposal) -> Candidate:
        """Return the candidate of one proposal; deterministic for a template."""


class Strategy(Protocol):
    """Decides what to try next. No clock, no I/O, seeded; matches by proposal id."""

    def ask(self, n: int) -> Sequence[Proposal]:
        """Return up to `n` new proposals; an empty list when it has nothing left to try."""

    def tell(self, outcome: Outcome) -> None:
        """Take in one verdict. Unknown ids are a ValueError."""

    def restore(self, attempts: Sequence[Attempt]) -> None:
        """Take in the attempts of an earlier session, once, before the first `ask`.

        Those with a verdict count as told; those without are told later. Ids go on after theirs.
        """


class Verifier(Protocol):
    """The judge, wherever it is. One verification at a time; builds may run beside it."""

    def load(self, problem: Problem) -> ProblemInfo:
        """Load the problem: reference, goldens, baselines.

        Raises:
            ProblemError: the problem is broken.
            InfraError: the machine is at fault.
        """

    def build(self, candidate: Candidate) -> None:
        """Compile ahead; blocks its caller until done; safe to call from other threads.

        The result is kept by the judge for the `verify` that follows; a failing build is reported
        there.
        """

    def verify(self, candidate: Candidate, tier: Tier) -> Verdict:
        """Run the ladder. Never raises for the candidate's fault.

        Raises:
            InfraError: the machine is at fault; the candidate was not judged.
        """

    def close(self) -> None:
        """End the judge and everything below it. Idempotent."""


class Store(Protocol):
    """The run's journal: append-only, one writer. Every call returns after it is durable."""

    def begin(self, spec: RunSpec, problem: Problem) -> None:
        """Create the run, or check that it is this one.

        Raises:
            ForeignRun: the folder holds another run.
        """

    def propose(self, attempt: Attempt, candidate: Candidate | None) -> None:
        """Record that an attempt was started."""

    def conclude(self, attempt: Attempt) -> None:
        """Record an attempt with its verdict."""

    def note(self, kind: str, payload: Mapping[str, Any]) -> None:
        """Append one event that is no attempt (setup, final, warning, stopped)."""

    def notes(self, kind: str) -> Sequence[Mapping[str, Any]]:
        """Return the payloads of all notes of one kind, oldest first."""

    def attempts(self) -> Sequence[Attempt]:
        """Return all attempts in order of id."""

    def candidate(self, candidate_id: str) -> Candidate:
        """Return a stored candidate.

        Raises:
            StoreError: it is missing or damaged.
        """

    def spend(self, seconds: float) -> None:
        """Add to the run's spent wall clock."""

    def spent_s(self) -> float:
        """Return the wall clock that all sessions of this run have spent."""
