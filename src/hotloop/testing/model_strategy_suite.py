"""ModelStrategySuite: what every strategy that spends model calls has to do."""

# ruff: noqa: D102  the name of a test says what it checks

from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.core.attempt import FREE_ACTIONS, Action, Attempt, Outcome, Proposal
from hotloop.core.protocols import Strategy
from hotloop.core.space import Space
from hotloop.core.verdict import Status
from hotloop.testing.scripted_search import (
    TUNABLES,
    Script,
    ScriptedSearch,
    by_chance,
    ended,
)

SEEDS = range(12)


class ModelStrategySuite:
    """What every strategy that spends model calls has to do."""

    def make(self, space: Space, seed: int, *, width: int, has_start: bool) -> Strategy:
        """Return the strategy under test."""
        raise NotImplementedError("a subclass of ModelStrategySuite returns its strategy here")

    def open(self, script: Script, *, width: int = 4, has_start: bool = False) -> ScriptedSearch:
        """Return a session of the strategy under test."""
        strategy = self.make(Space(dimensions=()), 7, width=width, has_start=has_start)
        return ScriptedSearch(strategy=strategy, script=script)

    def test_says_that_it_is_for_models(self) -> None:
        assert getattr(self.open(by_chance(0)).strategy, "for_models", False) is True

    @pytest.mark.parametrize("seed", SEEDS)
    def test_keeps_the_rules(self, seed: int) -> None:
        # ScriptedSearch holds every proposal against them.
        search = self.open(by_chance(seed), has_start=seed % 2 == 1)
        assert search.play(seed, 150)

    @pytest.mark.parametrize("width", [1, 2, 5])
    def test_no_more_calls_are_open_than_its_width(self, width: int) -> None:
        search = self.open(by_chance(1), width=width)
        for _ in range(30):
            search.ask(100)
            assert 1 <= search.open_calls() <= width
            search.tell(search.open_ids()[0])

    @pytest.mark.parametrize("seed", SEEDS)
    def test_the_same_tells_give_the_same_proposals(self, seed: int) -> None:
        first = self.open(by_chance(seed)).play(seed, 80)
        assert first == self.open(by_chance(seed)).play(seed, 80)

    @pytest.mark.parametrize("seed", SEEDS)
    @pytest.mark.parametrize("steps", [1, 20, 90])
    def test_a_restored_search_goes_on_as_a_live_one(self, seed: int, steps: int) -> None:
        live = self.open(by_chance(seed), has_start=seed % 2 == 1)
        live.play(seed, steps)
        restored = self.open(by_chance(seed), has_start=seed % 2 == 1)
        restored.attempts, restored.now_s = dict(live.attempts), live.now_s
        restored.strategy.restore(list(live.attempts.values()))
        assert restored.play(seed + 1, 60) == live.play(seed + 1, 60)

    def test_nothing_while_waiting_then_it_goes_on(self) -> None:
        search = self.open(by_chance(3))
        for _ in range(20):
            search.ask(100)
            assert search.ask(100) == []
            assert search.open_calls() > 0
            for proposal_id in search.open_ids():
                search.tell(proposal_id)
        assert search.ask(1)

    @pytest.mark.parametrize("status", [Status.COMPILE_ERROR, Status.INCONCLUSIVE])
    def test_goes_on_when_everything_fails(self, status: Status) -> None:
        search = self.open(lambda proposal: ended(proposal, status))
        assert len(search.rounds(60)) >= 60
        assert search.ask(1)

    def test_goes_on_when_nothing_gets_better(self) -> None:
        search = self.open(lambda proposal: ended(proposal, 1.0))
        assert len(search.rounds(60)) >= 60
        assert search.ask(1)

    def test_sweeps_are_proposed_only_where_free_work_is_asked_for(self) -> None:
        search = self.open(lambda proposal: ended(proposal, 1.0, TUNABLES))
        (first,) = search.ask(1)
        search.tell(first.id)
        assert all(p.action not in FREE_ACTIONS for p in search.ask(100))
        assert [p.action for p in search.ask(100, free=True)] == [Action.SWEEP] * 5
        assert search.ask(1, free=True) == []

    def test_nothing_is_swept_before_something_passed(self) -> None:
        search = self.open(lambda proposal: ended(proposal, Status.TIMEOUT, TUNABLES))
        search.rounds(3)
        assert search.ask(10, free=True) == []

    @pytest.mark.parametrize("free", [False, True])
    def test_the_start_comes_first_and_alone(self, free: bool) -> None:
        search = self.open(by_chance(0), has_start=True)
        (start,) = search.ask(5, free=free)
        assert (start.id, start.action, start.parents) == (1, Action.START, ())
        assert search.ask(5) == []
        assert search.ask(5, free=True) == []
        search.tell(start.id)
        assert search.ask(1)

    def test_a_failed_start_is_the_subject_of_the_first_repair(self) -> None:
        search = self.open(lambda p: ended(p, Status.COMPILE_ERROR), has_start=True)
        search.rounds(1)
        (first,) = search.ask(1)
        assert (first.action, first.parents) == (Action.REPAIR, (1,))

    def test_a_start_that_passed_is_improved(self) -> None:
        search = self.open(lambda p: ended(p, 1.0), has_start=True)
        search.rounds(1)
        (first,) = search.ask(1)
        assert (first.action, first.parents) == (Action.OPTIMISE, (1,))

    def test_unknown_ids_and_second_tells_are_refused(self) -> None:
        search = self.open(by_chance(0))
        (proposal,) = search.ask(1)
        with pytest.raises(ValueError, match=str(proposal.id + 1)):
            search.strategy.tell(ended(replace(proposal, id=proposal.id + 1), 1.0))
        search.tell(proposal.id)
        with pytest.raises(ValueError, match=str(proposal.id)):
            search.strategy.tell(ended(proposal, 1.0))

    def test_attempts_of_unknown_actions_keep_their_ids(self) -> None:
        search = self.open(by_chance(0))
        search.strategy.restore([_alien(5), _alien(9)])
        search.strategy.tell(_told(5))
        with pytest.raises(ValueError, match="5"):
            search.strategy.tell(_told(5))
        assert min(p.id for p in search.ask(3)) > 9

    def test_restore_comes_before_the_first_ask(self) -> None:
        search = self.open(by_chance(0))
        search.ask(1)
        with pytest.raises(ValueError, match="restore"):
            search.strategy.restore([_alien(5)])


def _alien(attempt_id: int) -> Attempt:
    return Attempt(
        id=attempt_id,
        action="transmute",
        point={},
        parents=(2,),
        generator="another",
        candidate_id=None,
        verdict=None,
        objective=None,
        started_s=0.0,
        finished_s=None,
    )


def _told(attempt_id: int) -> Outcome:
    return ended(Proposal(id=attempt_id, action="transmute"), 1.0)
