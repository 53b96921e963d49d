"""What costs no call: the user's kernel as it is, and other values of declared tunables.

For every generator: one that asks a model uses `without_call` itself, around one that knows nothing
of it stands `StartGenerator`.
"""

from __future__ import annotations

from dataclasses import replace

from hotloop.core.attempt import Action, Proposal, Written
from hotloop.core.candidate import Candidate
from hotloop.core.problem import ProblemInfo
from hotloop.core.protocols import Generator, Store
from hotloop.core.space import Space
from hotloop.prompts.tunables import read_tunables

OWN_ACTIONS = frozenset({Action.START, Action.SWEEP})
"""Actions that `without_call` carries out."""


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
        return proposal.action not in OWN_ACTIONS and self._inner.needs_call(proposal)

    def cancel(self, proposal_id: int) -> None:
        """Give up the inner generator's call."""
        self._inner.cancel(proposal_id)

    def generate(
        self, info: ProblemInfo, proposal: Proposal, *, deadline_s: float | None = None
    ) -> Written:
        """Return the starting kernel, a sweep of an earlier attempt, or the inner one's work."""
        if proposal.action in OWN_ACTIONS:
            return without_call(proposal, self._start, self._store)
        return self._inner.generate(info, proposal, deadline_s=deadline_s)


def without_call(proposal: Proposal, start: Candidate | None, store: Store) -> Written:
    """Carry out a proposal of `OWN_ACTIONS`.

    Args:
        proposal: to begin with the user's kernel, or to sweep a parent's tunables.
        start: the user's kernel; None where there is none.
        store: knows the parent of a sweep.

    Raises:
        StoreError: the parent's candidate is not in the journal.
        ValueError: it is another action, there is no kernel to begin with, or no parent with a
            candidate.
    """
    if proposal.action == Action.START and start is not None:
        return _started(start)
    if proposal.action == Action.SWEEP:
        return _swept(store, proposal)
    raise ValueError(
        f"proposal {proposal.id}: expected a sweep, or a start where there is a kernel to begin "
        f"with, got {proposal.action!r}"
    )


def _started(kernel: Candidate) -> Written:
    tunables = read_tunables(kernel.text())
    notes = (tunables.problem,) if tunables.problem else ()
    return Written(candidate=kernel, declared=tunables.space, notes=notes)


def _swept(store: Store, proposal: Proposal) -> Written:
    parent = next((a for a in store.attempts() if a.id in proposal.parents), None)
    if parent is None or parent.candidate_id is None:
        raise ValueError(f"expected a parent with a candidate, got {proposal.parents}")
    candidate = store.candidate(parent.candidate_id)
    pins = {**candidate.pins, **proposal.point}
    return Written(candidate=replace(candidate, pins=pins), declared=parent.declared)
