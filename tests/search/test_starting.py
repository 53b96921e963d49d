import pytest

from hotloop.core.attempt import Action
from hotloop.core.verdict import Status
from hotloop.search.random_search import RandomStrategy
from hotloop.search.starting import WithStart
from hotloop.search.tune import TuneStrategy
from hotloop.testing.fakes import SMALL_SPACE
from hotloop.testing.scripted_search import TUNABLES, ScriptedSearch, ended


def begin(result, *, declared=TUNABLES, make=TuneStrategy):
    """Return a search whose starting kernel ends so; every point of the space passes."""

    def script(proposal):
        is_start = proposal.action == Action.START
        return ended(proposal, result if is_start else 1.0 + proposal.id, declared)

    return ScriptedSearch(strategy=WithStart(make, SMALL_SPACE, 0), script=script)


def exhaust(search):
    proposed = []
    while new := search.ask(1):
        proposed += new
        search.tell(new[0].id)
    return proposed


def test_begins_with_the_start_and_does_not_wait_for_it():
    first = begin(1.0).ask(3)
    assert [(p.id, p.action) for p in first] == [(1, "start"), (2, "schedule"), (3, "schedule")]
    assert first[1].point == SMALL_SPACE.complete(SMALL_SPACE.starts[0])


def test_sweeps_of_a_start_that_passed_alternate_with_points():
    proposed = exhaust(begin(1.0))
    actions = [p.action for p in proposed]
    assert actions[:7] == ["start", *["sweep", "schedule"] * 3]
    assert (actions.count("sweep"), actions.count("schedule")) == (5, 48)
    assert {p.parents for p in proposed if p.action == "sweep"} == {(1,)}


@pytest.mark.parametrize(("result", "declared"), [(Status.TIMEOUT, TUNABLES), (1.0, None)])
def test_nothing_is_swept_when_it_failed_or_declares_nothing(result, declared):
    actions = [p.action for p in exhaust(begin(result, declared=declared))]
    assert actions == ["start", *["schedule"] * 48]


def test_the_wrapped_strategy_learns_its_own_outcomes():
    search = begin(1.0)
    plain = TuneStrategy(SMALL_SPACE, 0)
    theirs = [p for p in exhaust(search) if p.action == "schedule"]
    for expected in theirs:
        (proposal,) = plain.ask(1)
        assert proposal.point == expected.point
        plain.tell(ended(proposal, 1.0 + expected.id))


@pytest.mark.parametrize("make", [TuneStrategy, RandomStrategy])
def test_restore_repeats_nothing_and_takes_open_attempts(make):
    before = begin(1.0, make=make)
    proposed = before.ask(1)
    before.tell(1)
    proposed += before.ask(9)
    for proposal in proposed[1:6]:
        before.tell(proposal.id)
    after = begin(1.0, make=make)
    after.attempts, after.now_s = dict(before.attempts), before.now_s
    after.strategy.restore(list(before.attempts.values()))
    for proposal in proposed[6:]:
        after.tell(proposal.id)
    rest = exhaust(after)
    everything = [*proposed, *rest]
    assert [p.action for p in everything].count("sweep") == 5
    points = {tuple(p.point.items()) for p in everything if p.action == "schedule"}
    assert len(points) == 48
    assert len(everything) == 1 + 5 + 48


def test_a_second_tell_is_refused():
    search = begin(1.0)
    proposed = search.ask(2)
    for proposal in proposed:
        search.tell(proposal.id)
        with pytest.raises(ValueError, match=str(proposal.id)):
            search.strategy.tell(ended(proposal, 1.0))
