"""A closed search ends with what is known: only the final check of the best is awaited."""

from dataclasses import replace

import pytest

from hotloop.core.attempt import Budget
from hotloop.core.verdict import Status, Tier
from hotloop.engine import Parts, StopReason, run_search
from hotloop.search.random_search import RandomStrategy
from hotloop.store.memory import MemoryStore
from hotloop.testing.fake_model import FastClock
from hotloop.testing.fakes import (
    FakeGenerator,
    FakeVerifier,
    fake_verdict,
    make_problem,
    make_spec,
)
from hotloop.verify.bundle import Verdicts
from hotloop.verify.outside import OutsideVerifier, pending_items, take_in

PROBLEM = make_problem()
INFO = FakeVerifier().load(PROBLEM)
BUDGET = Budget(max_candidates=3)


class Run(MemoryStore):
    """A journal that is also read as a run."""

    def problem(self):
        return PROBLEM


class WithoutRules(OutsideVerifier):
    """Fake candidates are no Triton: the static rules are left out."""

    def verify(self, candidate, tier):
        info = self.load(self._problem)
        assert info is not None
        self._want(candidate.id, tier.value, "noted")
        return super().verify(candidate, tier)


def search(store, *, closes=False):
    parts = Parts(
        generator=FakeGenerator(),
        strategy=RandomStrategy,
        verifier=WithoutRules(store, PROBLEM),
        store=store,
        closes=closes,
    )
    return run_search(PROBLEM, parts, spec=make_spec(PROBLEM, budget=BUDGET), clock=FastClock())


def begun():
    """A run of three candidates that all await their fast verdicts."""
    store = Run()
    store.begin(make_spec(PROBLEM, budget=BUDGET), PROBLEM)
    assert search(store).reason is StopReason.WAITING
    take_in(store, PROBLEM, Verdicts(infos={PROBLEM.id: INFO}))
    assert search(store).reason is StopReason.WAITING
    assert [item.tier for item in pending_items(store)] == [Tier.FAST] * 3
    return store


def answer(store, outcome=0.5, *, count=None):
    made = [
        replace(fake_verdict(outcome, i.candidate.id, tier=i.tier), problem_id=PROBLEM.id)
        for i in pending_items(store)[:count]
    ]
    take_in(store, PROBLEM, Verdicts(verdicts=tuple(made)))


def test_only_the_final_check_of_what_is_known_is_due():
    store = begun()
    answer(store, count=1)
    result = search(store, closes=True)
    assert result.reason is StopReason.WAITING
    (item,) = pending_items(store)
    assert item.tier is Tier.FINAL
    answer(store)
    result = search(store, closes=True)
    assert result.reason is StopReason.CLOSED
    assert result.passed
    assert result.final.candidate_id == item.candidate.id
    assert sum(attempt.verdict is None for attempt in result.attempts) == 2  # they stay open
    assert search(store, closes=True).reason is StopReason.CLOSED
    assert pending_items(store) == []


def test_one_that_passes_is_enough_for_a_closed_search():
    store = begun()
    answer(store)  # three of the same time
    search(store, closes=True)
    (first,) = pending_items(store)
    answer(store, Status.INCORRECT_NUMERICAL)
    search(store, closes=True)
    (second,) = pending_items(store)
    assert first.tier is second.tier is Tier.FINAL
    assert second.candidate.id != first.candidate.id
    answer(store)
    result = search(store, closes=True)
    assert result.reason is StopReason.CLOSED
    assert result.final.candidate_id == second.candidate.id
    assert pending_items(store) == []


def test_an_open_search_asks_for_the_finals_of_all_that_are_close():
    store = begun()
    answer(store)
    assert search(store).reason is StopReason.WAITING
    assert [item.tier for item in pending_items(store)] == [Tier.FINAL] * 3


def test_without_closing_the_same_run_goes_on():
    store = begun()
    answer(store, count=1)
    search(store, closes=True)
    answer(store)
    search(store, closes=True)
    assert search(store).reason is StopReason.WAITING
    assert [item.tier for item in pending_items(store)] == [Tier.FAST] * 2
    answer(store)
    search(store)
    answer(store)
    assert search(store).reason is StopReason.CANDIDATES


@pytest.mark.parametrize("outcome", [0.5, Status.INCORRECT_NUMERICAL])
def test_a_final_that_came_counts_while_the_search_waits_for_others(outcome):
    store = begun()
    answer(store, count=1)
    search(store, closes=True)
    answer(store, outcome)
    for _ in range(2):
        result = search(store)
        assert result.reason is StopReason.WAITING
        assert result.passed == (outcome == 0.5)
        (note,) = store.notes("final")
        assert note["candidate_id"] == result.attempts[0].candidate_id


def test_a_search_that_found_nothing_is_closed_at_once():
    store = begun()
    result = search(store, closes=True)
    assert result.reason is StopReason.CLOSED
    assert not result.passed
    assert pending_items(store) == []


def test_verdicts_that_came_with_the_closing_count():
    store = begun()
    answer(store, Status.INCORRECT_NUMERICAL, count=2)
    answer(store, count=1)
    result = search(store, closes=True)
    statuses = [a.verdict.status for a in result.attempts if a.verdict is not None]
    assert sorted(statuses) == [Status.INCORRECT_NUMERICAL] * 2 + [Status.PASSED]
    assert [item.tier for item in pending_items(store)] == [Tier.FINAL]
