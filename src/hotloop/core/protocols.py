"""The contracts between the engine and what is wired into it.

The engine knows no torch, no network and no disk: it sees these protocols. Implementations do not
inherit them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from hotloop.core.attempt import Attempt, Outcome, Proposal, RunSpec, Written
from hotloop.core.candidate import Candidate
from hotloop.core.lease import LeaseBook
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.space import Space
from hotloop.core.verdict import Tier, Verdict


class Generator(Protocol):
    """Proposes candidates: from templates, or by asking a model."""

    name: str
    is_outside: bool
    """Whether its answers come from outside (a folder): the clock stops while only they are
    awaited."""

    def space(self, info: ProblemInfo) -> Space:
        """Return the schedules it offers for a problem.

        Raises:
            UnsupportedOp: no kernel family covers the problem.
        """

    def needs_call(self, proposal: Proposal) -> bool:
        """Whether `generate` asks a model for this proposal: it may then take minutes."""

    def generate(
        self, info: ProblemInfo, proposal: Proposal, *, deadline_s: float | None = None
    ) -> Written:
        """Carry out one proposal; deterministic for a template.

        Safe to call from several threads for proposals that need a call. The same proposal of a
        run that goes on gets the same prompt, and a reply that was paid for is not asked for again.

        Args:
            info: the problem as the judge found it.
            proposal: what to make.
            deadline_s: seconds that a model call may take; None waits without end.

        Raises:
            Pending: the answer comes from outside and nobody waits for it.
            ProviderError: no call can be made at all (key, model, endpoint, credit); a call that
                failed by itself is a `Written` without code.
        """

    def cancel(self, proposal_id: int) -> None:
        """Give up the call of this proposal: its `generate` returns without code."""


class Strategy(Protocol):
    """Decides what to try next. No clock, no I/O, seeded; matches by proposal id."""

    def ask(self, n: int, *, free: bool = False) -> Sequence[Proposal]:
        """Return up to `n` new proposals.

        An empty list means that it has nothing to try until an open proposal is told, and nothing
        left at all when none is open.

        Args:
            n: at most so many.
            free: only proposals that cost no model call (`core.attempt.FREE_ACTIONS`): what to do
                with a GPU that is idle while calls are under way, and with the end of a budget.
        """

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
            Pending: it is loaded elsewhere, and what was found there has not come back yet.
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
            Pending: it is judged elsewhere, and its verdict has not come back yet.
            InfraError: the machine is at fault; the candidate was not judged.
        """

    def close(self) -> None:
        """End the judge and everything below it. Idempotent."""


class Store(Protocol):
    """The run's journal: append-only, one writer. Every call returns after it is durable."""

    @property
    def leases(self) -> LeaseBook:
        """Return what it knows of verifications under way."""

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
