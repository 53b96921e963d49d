"""A search without a model and a GPU: a strategy asked and told by a script, its journal kept.

Every proposal is held against the rules that all strategies for models share. How an attempt ends
depends on its id and the script's seed alone. Verdicts measure nothing and must not leave a test.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from hotloop.core.attempt import FREE_ACTIONS, Action, Attempt, Outcome, Proposal
from hotloop.core.protocols import Strategy
from hotloop.core.record import dumps
from hotloop.core.space import Dimension, Space
from hotloop.core.verdict import Status
from hotloop.testing.fakes import fake_verdict

TUNABLES = Space(
    dimensions=(
        Dimension(name="BLOCK", choices=(64, 32, 128), ordered=True),
        Dimension(name="num_warps", choices=(4, 8), ordered=True),
    )
)
"""Six points; the first is what the kernel itself uses."""

FAILURES = (
    Status.COMPILE_ERROR,
    Status.INCORRECT_NUMERICAL,
    Status.NO_CODE,
    Status.RUNTIME_ERROR,
    Status.TIMEOUT,
    Status.INCONCLUSIVE,
)

Script = Callable[[Proposal], Outcome]
"""How an attempt ends."""


def ended(proposal: Proposal, result: float | Status, declared: Space | None = None) -> Outcome:
    """Return the outcome of an attempt that passed with an objective, or failed."""
    verdict = fake_verdict(result, f"{proposal.id:016x}")
    objective = None if isinstance(result, Status) else result
    return Outcome(proposal_id=proposal.id, verdict=verdict, objective=objective, declared=declared)


def by_chance(seed: int, pass_frac: float = 0.4) -> Script:
    """Return a script by which a share of the attempts passes; half of these can be swept."""

    def script(proposal: Proposal) -> Outcome:
        rng = random.Random(f"{seed}/{proposal.id}")
        if rng.random() >= pass_frac:
            return ended(proposal, rng.choice(FAILURES))
        objective = 0.5 + rng.random()
        is_swept = proposal.action != Action.SWEEP and rng.random() < 0.5
        return ended(proposal, objective, TUNABLES if is_swept else None)

    return script


@dataclass(slots=True, kw_only=True)
class ScriptedSearch:
    """One session of a strategy; `attempts` is its journal."""

    strategy: Strategy
    script: Script
    attempts: dict[int, Attempt] = field(default_factory=dict)
    now_s: float = 0.0

    def ask(self, n: int, *, free: bool = False) -> list[Proposal]:
        """Ask, hold each proposal against the rules, and write it down."""
        proposals = list(self.strategy.ask(n, free=free))
        assert len(proposals) <= n
        for proposal in proposals:
            self._check(proposal, free=free)
            self.attempts[proposal.id] = self._attempt(proposal)
        return proposals

    def tell(self, proposal_id: int) -> None:
        """Conclude an open attempt as the script says."""
        attempt = self.attempts[proposal_id]
        proposal = Proposal(
            id=attempt.id, action=attempt.action, point=attempt.point, parents=attempt.parents
        )
        outcome = self.script(proposal)
        self.now_s += 1.0
        self.attempts[proposal_id] = replace(
            attempt,
            candidate_id=outcome.verdict.candidate_id,
            verdict=outcome.verdict,
            objective=outcome.objective,
            declared=outcome.declared,
            finished_s=self.now_s,
        )
        self.strategy.tell(outcome)

    def open_ids(self) -> list[int]:
        """Return the ids of the attempts without a verdict, in order."""
        return sorted(a.id for a in self.attempts.values() if a.verdict is None)

    def open_calls(self) -> int:
        """Return how many model calls are under way."""
        return sum(self.attempts[i].action not in FREE_ACTIONS for i in self.open_ids())

    def play(self, seed: int, steps: int) -> list[Proposal]:
        """Ask and tell in an order drawn from the seed; return what was proposed."""
        rng = random.Random(seed)
        proposed = []
        for _ in range(steps):
            still_open = self.open_ids()
            if still_open and rng.random() < 0.5:
                self.tell(rng.choice(still_open))
            else:
                proposed += self.ask(rng.randint(1, 3), free=rng.random() < 0.3)
        return proposed

    def rounds(self, count: int) -> list[Proposal]:
        """Fill all call slots, then conclude them, `count` times; return what was proposed."""
        proposed = []
        for _ in range(count):
            proposed += self.ask(100)
            for proposal_id in self.open_ids():
                self.tell(proposal_id)
        return proposed

    def _check(self, proposal: Proposal, *, free: bool) -> None:
        assert proposal.id not in self.attempts, "an id was given out twice"
        is_sweep = proposal.action == Action.SWEEP
        alike = [a.id for a in self.attempts.values() if (a.action == Action.SWEEP) is is_sweep]
        assert all(proposal.id > known for known in alike), "ids go up, those of sweeps apart"
        if free:
            assert proposal.action in FREE_ACTIONS, "only free work was asked for"
        parents = [self.attempts[parent] for parent in proposal.parents]
        assert all(p.verdict is not None for p in parents), "a parent has no verdict yet"
        passed = [p.verdict is not None and p.verdict.passed for p in parents]
        if proposal.action in (Action.START, Action.DRAFT):
            assert not parents
        if proposal.action == Action.REPAIR:
            assert passed == [False], "only what failed is repaired"
        if proposal.action in (Action.OPTIMISE, Action.REGENERATE, Action.SWEEP):
            assert passed == [True], "only what passed is improved"
        if proposal.action == Action.SWEEP:
            self._check_sweep(proposal, parents)

    def _check_sweep(self, proposal: Proposal, parents: Sequence[Attempt]) -> None:
        declared = parents[0].declared
        assert declared is not None, "a sweep sets tunables that its parent declares"
        assert proposal.point == declared.complete(proposal.point)
        assert proposal.point != declared.complete({}), "the parent itself is that point"
        for other in self.attempts.values():
            if other.action == Action.SWEEP and other.parents == proposal.parents:
                assert dumps(other.point) != dumps(proposal.point), "a point was swept twice"

    def _attempt(self, proposal: Proposal) -> Attempt:
        return Attempt(
            id=proposal.id,
            action=proposal.action,
            point=proposal.point,
            parents=proposal.parents,
            generator="scripted",
            candidate_id=None,
            verdict=None,
            objective=None,
            started_s=self.now_s,
            finished_s=None,
        )
