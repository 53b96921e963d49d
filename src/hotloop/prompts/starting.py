"""A generator that begins with the user's kernel, around one that knows nothing of it.

The kernel itself and sweeps of the tunables that it declares come from here, without any call; all
else is the inner generator's.
"""

from __future__ import annotations

from dataclasses import replace

from hotloop.core.attempt import Action, Proposal, Written
from hotloop.core.candidate import Candidate
from hotloop.core.problem import ProblemInfo
from hotloop.core.protocols import Generator, Store
from hotloop.core.space import Space
from hotloop.prompts.tunables import read_tunables


class StartGenerator:
    """Adds the actions `start` and `sweep` to a generator."""

    def __init__(self, inner: Generator, start: Candidate, store: Store) -> None:
        self._inner = inner
        self._start = start
        self._store = store
        self.name = inner.name
        self.is_outside = inner.is_outside

    def space(self, info: ProblemInfo) -> Space:
        """Return the inner generator's schedules."""
        return self._inner.space(info)

    def needs_call(self, proposal: Proposal) -> bool:
        """Return whether the inner generator asks a model for it."""
        return proposal.action not in _OWN and self._inner.needs_call(proposal)

    def cancel(self, proposal_id: int) -> None:
        """Give up the inner generator's call."""
        self._inner.cancel(proposal_id)

    def generate(
        self, info: ProblemInfo, proposal: Proposal, *, deadline_s: float | None = None
    ) -> Written:
        """Return the starting kernel, a sweep of an earlier attempt, or the inner one's work."""
        if proposal.action == Action.START:
            return started(self._start)
        if proposal.action == Action.SWEEP:
            return swept(self._store, proposal)
        return self._inner.generate(info, proposal, deadline_s=deadline_s)


def started(kernel: Candidate) -> Written:
    """Return the kernel that the user began with, and what it lets a sweep choose."""
    tunables = read_tunables(kernel.text())
    notes = (tunables.problem,) if tunables.problem else ()
    return Written(candidate=kernel, declared=tunables.space, notes=notes)


def swept(store: Store, proposal: Proposal) -> Written:
    """Return the parent's source at another point of its tunables.

    Raises:
        StoreError: the parent is not in the journal.
        ValueError: the proposal has no parent with a candidate.
    """
    parent = next((a for a in store.attempts() if a.id in proposal.parents), None)
    if parent is None or parent.candidate_id is None:
        raise ValueError(f"expected a parent with a candidate, got {proposal.parents}")
    candidate = store.candidate(parent.candidate_id)
    pins = {**candidate.pins, **proposal.point}
    return Written(candidate=replace(candidate, pins=pins), declared=parent.declared)


_OWN = frozenset({Action.START, Action.SWEEP})
