"""A judge reached by files, and a short final verdict where the full one is asked for."""

from dataclasses import replace

import pytest
from small_kernels import DOUBLE, candidate

from hotloop.core.verdict import Status, Tier
from hotloop.errors import Pending
from hotloop.store.memory import MemoryStore
from hotloop.testing.fakes import FakeVerifier, fake_verdict, make_problem, make_spec
from hotloop.verify.bundle import JudgeError, Verdicts
from hotloop.verify.outside import OutsideVerifier, pending_items, take_in

PROBLEM = make_problem()
INFO = FakeVerifier().load(PROBLEM)
KERNEL = candidate(DOUBLE)


class Run(MemoryStore):
    """A journal that is also read as a run."""

    def problem(self):
        return PROBLEM


def final(outcome=0.5, *, short=False):
    made = fake_verdict(outcome, KERNEL.id, tier=Tier.FINAL)
    return replace(made, problem_id=PROBLEM.id, short=short)


def take(store, *verdicts, errors=()):
    return take_in(store, PROBLEM, Verdicts(verdicts=verdicts, errors=errors))


def ask(store, *, in_full):
    return OutsideVerifier(store, PROBLEM, wants_full=in_full).verify(KERNEL, Tier.FINAL)


@pytest.fixture
def judged_short():
    """A run that asked for the short final tier and has its verdict."""
    store = Run()
    store.begin(make_spec(PROBLEM), PROBLEM)
    store._candidates[KERNEL.id] = KERNEL
    take_in(store, PROBLEM, Verdicts(infos={PROBLEM.id: INFO}))
    with pytest.raises(Pending):
        ask(store, in_full=False)
    assert take(store, final(short=True)).verdicts == 1
    assert ask(store, in_full=False).short
    assert pending_items(store, short=True) == []
    return store


def test_the_full_one_is_asked_for_once_and_taken_in(judged_short):
    for _ in range(2):
        with pytest.raises(Pending, match=r"\(final, the full one\)"):
            ask(judged_short, in_full=True)
    (item,) = pending_items(judged_short)
    assert (item.tier, item.short) == (Tier.FINAL, False)
    assert take(judged_short, final(short=True)).verdicts == 0, "a short one is no answer"
    assert take(judged_short, final()).verdicts == 1
    assert take(judged_short, final()).verdicts == 0
    assert not ask(judged_short, in_full=True).short
    assert pending_items(judged_short) == []


def test_a_full_one_that_nobody_asked_for_is_left_alone(judged_short):
    assert take(judged_short, final()).verdicts == 0
    assert ask(judged_short, in_full=False).short


def test_who_asks_for_the_short_one_again_needs_nothing_more(judged_short):
    with pytest.raises(Pending):
        ask(judged_short, in_full=True)
    assert pending_items(judged_short, short=True) == []
    assert ask(judged_short, in_full=False).short


def test_a_refusal_of_the_full_tier_is_an_answer(judged_short):
    with pytest.raises(Pending):
        ask(judged_short, in_full=True)
    take(judged_short, final(Status.RUNTIME_ERROR, short=True))
    assert ask(judged_short, in_full=True).status is Status.RUNTIME_ERROR
    assert pending_items(judged_short) == []


def test_what_could_not_be_judged_in_full_is_counted(judged_short):
    with pytest.raises(Pending):
        ask(judged_short, in_full=True)
    lost = JudgeError(
        problem_id=PROBLEM.id, candidate_id=KERNEL.id, tier=Tier.FINAL, error="DeviceLost",
        message="no GPU",
    )  # fmt: skip
    assert len(take(judged_short, errors=(lost,)).warnings) == 1
    (note,) = judged_short.notes("outside_error")
    assert (note["candidate_id"], note["tier"]) == (KERNEL.id, "final")
    (item,) = pending_items(judged_short)
    assert item.asked == 2
