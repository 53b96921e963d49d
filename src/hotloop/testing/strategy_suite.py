"""StrategySuite: what every strategy over a schedule space has to do."""

# ruff: noqa: D102  the name of a test says what it checks

from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.core.attempt import Attempt, Outcome, Proposal
from hotloop.core.protocols import Strategy
from hotloop.core.record import dumps
from hotloop.core.space import Dimension, Space
from hotloop.core.verdict import Status, Tier
from hotloop.testing.fakes import SMALL_SPACE, fake_verdict, small_latency_ms

HUGE_SPACE = Space(
    dimensions=tuple(Dimension(name=f"d{i}", choices=tuple(range(10))) for i in range(12))
)
"""10^12 points: no strategy may list them."""

_VERDICT = fake_verdict(1.5, "0" * 16)


class StrategySuite:
    """What every strategy over a schedule space has to do."""

    def make(self, space: Space, seed: int) -> Strategy:
        """Return the strategy under test."""
        raise NotImplementedError("a subclass of StrategySuite returns its strategy here")

    def test_starting_points_come_first(self) -> None:
        asked = self.make(SMALL_SPACE, 0).ask(2)
        assert [p.point for p in asked] == [SMALL_SPACE.complete(s) for s in SMALL_SPACE.starts]

    def test_every_point_once_then_nothing(self) -> None:
        strategy = self.make(SMALL_SPACE, 3)
        points = [dumps(p.point) for p in _drive(strategy, 1000)]
        assert len(points) == len(set(points)) == 48
        assert list(strategy.ask(5)) == []

    def test_points_are_complete(self) -> None:
        for proposal in _drive(self.make(SMALL_SPACE, 1), 30):
            assert SMALL_SPACE.complete(proposal.point) == proposal.point

    def test_ids_are_unique(self) -> None:
        ids = [p.id for p in _drive(self.make(SMALL_SPACE, 1), 40)]
        assert len(ids) == len(set(ids))

    def test_same_seed_and_tells_give_the_same_proposals(self) -> None:
        first = _drive(self.make(SMALL_SPACE, 5), 30)
        assert first == _drive(self.make(SMALL_SPACE, 5), 30)

    def test_another_seed_gives_others(self) -> None:
        first = [p.point for p in _drive(self.make(SMALL_SPACE, 5), 20)]
        assert first != [p.point for p in _drive(self.make(SMALL_SPACE, 6), 20)]

    def test_tells_match_by_id_in_any_order(self) -> None:
        strategy = self.make(SMALL_SPACE, 0)
        for proposal in reversed(strategy.ask(8)):
            strategy.tell(_outcome(proposal))
        assert len(strategy.ask(8)) == 8

    def test_unknown_id_is_refused(self) -> None:
        strategy = self.make(SMALL_SPACE, 0)
        (proposal,) = strategy.ask(1)
        with pytest.raises(ValueError, match=str(proposal.id + 1)):
            strategy.tell(_outcome(replace(proposal, id=proposal.id + 1)))

    def test_a_second_tell_is_refused(self) -> None:
        strategy = self.make(SMALL_SPACE, 0)
        (proposal,) = strategy.ask(1)
        strategy.tell(_outcome(proposal))
        with pytest.raises(ValueError, match=str(proposal.id)):
            strategy.tell(_outcome(proposal))

    def test_goes_on_when_everything_fails(self) -> None:
        strategy = self.make(SMALL_SPACE, 0)
        for _ in range(48):
            (proposal,) = strategy.ask(1)
            strategy.tell(_failure(proposal))
        assert list(strategy.ask(1)) == []

    def test_restore_repeats_nothing(self) -> None:
        before = _drive(self.make(SMALL_SPACE, 0), 20)
        strategy = self.make(SMALL_SPACE, 0)
        strategy.restore([_attempt(p) for p in before])
        after = _drive(strategy, 1000)
        assert {dumps(p.point) for p in before}.isdisjoint(dumps(p.point) for p in after)
        assert {p.id for p in before}.isdisjoint(p.id for p in after)
        assert len(before) + len(after) == 48

    def test_restored_pending_attempts_can_be_told(self) -> None:
        before = _drive(self.make(SMALL_SPACE, 0), 4)
        strategy = self.make(SMALL_SPACE, 0)
        pending = replace(_attempt(before[-1]), verdict=None, objective=None)
        strategy.restore([*(_attempt(p) for p in before[:-1]), pending])
        strategy.tell(_outcome(before[-1]))
        with pytest.raises(ValueError, match=str(before[0].id)):
            strategy.tell(_outcome(before[0]))

    def test_restores_attempts_of_another_space(self) -> None:
        strategy = self.make(SMALL_SPACE, 0)
        alien = Proposal(id=7, action="schedule", point={"GONE": 3})
        strategy.restore([replace(_attempt(alien), verdict=None, objective=None)])
        strategy.tell(_outcome(alien, 1.0))
        assert min(p.id for p in strategy.ask(3)) > 7

    def test_a_huge_space_is_not_listed(self) -> None:
        points = [dumps(p.point) for p in _drive(self.make(HUGE_SPACE, 0), 30, latency_ms=1.0)]
        assert len(set(points)) == 30

    def test_a_space_without_choices_has_one_point(self) -> None:
        assert len(_drive(self.make(Space(dimensions=()), 0), 10, latency_ms=1.0)) == 1


def _drive(strategy: Strategy, count: int, latency_ms: float | None = None) -> list[Proposal]:
    """Ask up to `count` times, three proposals ahead; tell in order."""
    asked: list[Proposal] = []
    told = 0
    while len(asked) < count:
        new = strategy.ask(min(3 - (len(asked) - told), count - len(asked)))
        if not new and told == len(asked):
            break
        asked.extend(new)
        strategy.tell(_outcome(asked[told], latency_ms))
        told += 1
    for proposal in asked[told:]:
        strategy.tell(_outcome(proposal, latency_ms))
    return asked


def _outcome(proposal: Proposal, latency_ms: float | None = None) -> Outcome:
    result = latency_ms or small_latency_ms(proposal.point, Tier.FAST)
    if isinstance(result, Status):
        return _failure(proposal)
    return Outcome(proposal_id=proposal.id, verdict=_VERDICT, objective=result)


def _failure(proposal: Proposal) -> Outcome:
    verdict = fake_verdict(Status.COMPILE_ERROR, "0" * 16)
    return Outcome(proposal_id=proposal.id, verdict=verdict, objective=None)


def _attempt(proposal: Proposal) -> Attempt:
    is_ours = "BLOCK" in proposal.point
    result = small_latency_ms(proposal.point, Tier.FAST) if is_ours else 1.0
    return Attempt(
        id=proposal.id,
        action=proposal.action,
        point=proposal.point,
        parents=(),
        generator="fake",
        candidate_id="0" * 16,
        verdict=fake_verdict(result, "0" * 16),
        objective=None if isinstance(result, Status) else result,
        started_s=0.0,
        finished_s=1.0,
    )
