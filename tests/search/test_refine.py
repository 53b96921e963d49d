import pytest

from hotloop.core.attempt import Action
from hotloop.core.space import Space
from hotloop.core.verdict import Status
from hotloop.search.refine import RefineStrategy
from hotloop.testing.scripted_search import TUNABLES, ScriptedSearch, ended
from hotloop.testing.suites import ModelStrategySuite

DRAFT, REPAIR, OPTIMISE = Action.DRAFT, Action.REPAIR, Action.OPTIMISE
FAILED = Status.INCORRECT_NUMERICAL


class TestRefineStrategy(ModelStrategySuite):
    def make(self, space, seed, *, width, has_start):
        return RefineStrategy(space, seed, width=width, has_start=has_start)


def refine(results, **options):
    """Return a search whose attempts end as listed by id."""
    strategy = RefineStrategy(Space(dimensions=()), 0, **options)
    return ScriptedSearch(strategy=strategy, script=lambda p: ended(p, results[p.id]))


def steps(proposals):
    return [(p.action, *p.parents) for p in proposals]


def test_mends_what_fails_then_improves_the_best():
    results = {1: FAILED, 2: FAILED, 3: 2.0, 4: 1.0, 5: 1.5, 6: 0.8}
    assert steps(refine(results).rounds(6)) == [
        (DRAFT,),
        (REPAIR, 1),
        (REPAIR, 2),
        (OPTIMISE, 3),
        (OPTIMISE, 4),
        (OPTIMISE, 4),
    ]


def test_draws_anew_after_three_repairs_and_goes_back_to_the_best_if_there_is_one():
    results = {1: FAILED, 2: FAILED, 3: FAILED, 4: FAILED, 5: 1.0} | dict.fromkeys(
        range(6, 11), FAILED
    )
    assert steps(refine(results).rounds(10))[3:] == [
        (REPAIR, 3),
        (DRAFT,),
        (OPTIMISE, 5),
        (REPAIR, 6),
        (REPAIR, 7),
        (REPAIR, 8),
        (OPTIMISE, 5),
    ]


def test_regenerates_once_after_each_four_tries_without_a_new_best():
    results = {1: 1.0} | dict.fromkeys(range(2, 20), 1.2)
    actions = [p.action for p in refine(results).rounds(12)]
    plateau = [OPTIMISE] * 4 + [Action.REGENERATE]
    assert actions == [DRAFT, *plateau, *plateau, OPTIMISE]


def test_a_gain_within_noise_is_the_new_best_but_ends_no_plateau():
    results = {1: 1.0, 2: 1.2, 3: 1.2, 4: 0.999, 5: 1.2, 6: 1.2}
    assert steps(refine(results).rounds(6))[-2:] == [(OPTIMISE, 4), (Action.REGENERATE, 4)]


def test_a_swept_point_that_is_faster_is_improved_next():
    search = ScriptedSearch(
        strategy=RefineStrategy(Space(dimensions=()), 0),
        script=lambda p: ended(p, 0.5 if p.action is Action.SWEEP else 1.0, TUNABLES),
    )
    search.rounds(1)
    (sweep,) = search.ask(1, free=True)
    search.tell(sweep.id)
    assert steps(search.ask(1)) == [(OPTIMISE, sweep.id)]


def test_a_width_of_nothing_is_refused():
    with pytest.raises(ValueError, match="width"):
        RefineStrategy(Space(dimensions=()), 0, width=0)
