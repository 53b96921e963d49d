"""TuneStrategy: Bayesian tuning of a schedule space with optuna's TPE sampler.

Starting points come first; then the sampler's proposals alternate with untried neighbours of the
best point. Points that failed are told with a penalty, so that the sampler learns what does not
fit. Where it repeats itself, a neighbour is taken, then any untried point, until none is left.

Kept in memory: the journal is the engine's, and `restore` replays it.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.trial import Trial, TrialState, create_trial

from hotloop.core.attempt import Attempt, Outcome, Proposal
from hotloop.core.space import Dimension, Point, Scalar, Space
from hotloop.core.verdict import Status, Verdict
from hotloop.search.ledger import Ledger
from hotloop.search.lineage import NO_TRIES
from hotloop.search.points import neighbours, point_key

PENALTY = 1e9
"""Objective of a point that failed. TPE uses the order of objectives only, so any number over
every real one does: 1e9 ms are 11 days, and static costs stay under the register file's bytes."""

STARTUP_TRIALS = 10
"""Points before the sampler models anything; optuna's default, pinned."""

EI_CANDIDATES = 24
"""Draws that the sampler weighs for each proposal; optuna's default, pinned."""

NEIGHBOUR_EVERY = 2
"""Every so many proposals one is a neighbour of the best point. On a synthetic tile-size model with
30,000 points this took the mean best of 30 proposals from 1.18 to 1.08 (24 seeds; optimum 0.9);
after 120 both are at 0.95."""

REPEATS = 4
"""Proposals in a row that may repeat tried points before a neighbour is taken instead."""


class TuneStrategy:
    """Tune a space by TPE; deterministic under a seed and the same tells."""

    def __init__(self, space: Space, seed: int) -> None:
        """Raises ValueError when a starting point is not of the space."""
        self._space = space
        self._ledger = Ledger(space)
        self._rng = random.Random(seed)
        self._study = _new_study(seed)
        self._trials: dict[int, Trial] = {}
        self._turn = 0
        self._best: tuple[float, dict[str, Scalar]] | None = None

    def ask(self, n: int, *, free: bool = False) -> Sequence[Proposal]:
        """Return up to `n` new proposals, all free; none when every point was tried."""
        proposals: list[Proposal] = []
        while len(proposals) < n:
            proposal = self._propose()
            if proposal is None:
                break
            proposals.append(proposal)
        return proposals

    def tell(self, outcome: Outcome) -> None:
        """Learn from a verdict.

        Raises:
            ValueError: its id is unknown or was told before.
        """
        point = self._ledger.settle(outcome.proposal_id)
        if point is None:
            return
        trial = self._trials.pop(outcome.proposal_id)
        if _says_nothing(outcome.verdict):
            self._study.tell(trial, state=TrialState.FAIL)  # left out of the model
            return
        self._study.tell(trial, self._weigh(point, outcome.objective))

    def restore(self, attempts: Sequence[Attempt]) -> None:
        """Learn from the concluded attempts of an earlier session and reopen the pending ones."""
        for attempt, point in self._ledger.restore(attempts):
            if attempt.verdict is None:
                self._trials[attempt.id] = self._fixed_trial(point)
                continue
            if _says_nothing(attempt.verdict):
                continue
            value = self._weigh(point, attempt.objective)
            self._study.add_trial(
                create_trial(
                    value=value,
                    params=_encode(self._space, point),
                    distributions={d.name: _distribution(d) for d in _present(self._space, point)},
                )
            )

    def _propose(self) -> Proposal | None:
        chosen = self._choose()
        if chosen is None:
            return None
        point, trial = chosen
        proposal = self._ledger.propose(point)
        self._trials[proposal.id] = trial
        return proposal

    def _choose(self) -> tuple[dict[str, Scalar], Trial] | None:
        point = self._ledger.first_untried(self._space.starts)
        if point is None:
            self._turn += 1
            if self._turn % NEIGHBOUR_EVERY == 0:
                point = self._nearby()
        if point is None:
            sampled = self._sample()
            if sampled is not None:
                return sampled
            point = self._nearby()
        if point is None:
            point = self._ledger.draw_untried(self._rng)
        return None if point is None else (point, self._fixed_trial(point))

    def _sample(self) -> tuple[dict[str, Scalar], Trial] | None:
        for _ in range(REPEATS):
            trial = self._study.ask()
            point = self._suggest(trial)
            if not self._ledger.is_tried(point):
                return point, trial
            # A failed trial is left out of the model: the repeated point is in it already.
            self._study.tell(trial, state=TrialState.FAIL)
        return None

    def _nearby(self) -> dict[str, Scalar] | None:
        if self._best is None:
            return None
        near = [p for p in neighbours(self._space, self._best[1]) if not self._ledger.is_tried(p)]
        return self._rng.choice(near) if near else None

    def _fixed_trial(self, point: Point) -> Trial:
        self._study.enqueue_trial(_encode(self._space, point))
        trial = self._study.ask()
        self._suggest(trial)
        return trial

    def _suggest(self, trial: Trial) -> dict[str, Scalar]:
        point: dict[str, Scalar] = {}
        for dimension in self._space.dimensions:
            if not dimension.exists(point):
                continue
            last = len(dimension.choices) - 1
            if dimension.ordered:
                index = trial.suggest_int(dimension.name, 0, last)
            else:
                index = trial.suggest_categorical(dimension.name, list(range(last + 1)))
            point[dimension.name] = dimension.choices[index]
        return point

    def _weigh(self, point: dict[str, Scalar], objective: float | None) -> float:
        if objective is None:
            return PENALTY
        ranked = (objective, point_key(point))
        if self._best is None or ranked < (self._best[0], point_key(self._best[1])):
            self._best = (objective, point)
        return objective


def _says_nothing(verdict: Verdict) -> bool:
    """Whether no machine could judge the point."""
    is_inconclusive = verdict.status is Status.INCONCLUSIVE
    return is_inconclusive and verdict.evidence is not None and verdict.evidence.kind in NO_TRIES


def _new_study(seed: int) -> optuna.Study:
    # optuna logs each study on stderr, which belongs to the command line.
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        # `group` models conditional dimensions; it has been "experimental" since optuna 2.8.
        warnings.simplefilter("ignore", ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(
            n_startup_trials=STARTUP_TRIALS,
            n_ei_candidates=EI_CANDIDATES,
            multivariate=True,
            group=True,
            constant_liar=True,
            seed=seed,
        )
    return optuna.create_study(
        storage=optuna.storages.InMemoryStorage(), sampler=sampler, direction="minimize"
    )


def _present(space: Space, point: Point) -> list[Dimension]:
    return [d for d in space.dimensions if d.name in point]


def _encode(space: Space, point: Point) -> dict[str, int]:
    # Choices travel as indices: optuna cannot tell True from 1, and mixed types warn.
    return {d.name: d.choices.index(point[d.name]) for d in _present(space, point)}


def _distribution(dimension: Dimension) -> BaseDistribution:
    last = len(dimension.choices) - 1
    if dimension.ordered:
        return IntDistribution(0, last)
    return CategoricalDistribution(list(range(last + 1)))
