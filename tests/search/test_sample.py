from hotloop.core.attempt import Action
from hotloop.core.space import Space
from hotloop.core.verdict import Status
from hotloop.search.sample import SampleStrategy
from hotloop.testing.scripted_search import TUNABLES, ScriptedSearch, ended
from hotloop.testing.suites import ModelStrategySuite

FAILED = Status.RUNTIME_ERROR


class TestSampleStrategy(ModelStrategySuite):
    def make(self, space, seed, *, width, has_start):
        return SampleStrategy(space, seed, width=width, has_start=has_start)


def sample(script, **options):
    strategy = SampleStrategy(Space(dimensions=()), 0, **options)
    return ScriptedSearch(strategy=strategy, script=script)


def test_without_feedback_every_call_is_a_draft_that_knows_nothing():
    search = sample(lambda p: ended(p, FAILED if p.id % 2 else 1.0), has_feedback=False)
    proposed = search.rounds(5)
    assert len(proposed) == 20
    assert {(p.action, p.parents, tuple(p.point)) for p in proposed} == {(Action.DRAFT, (), ())}


def test_a_failing_draft_gets_two_repairs():
    search = sample(lambda p: ended(p, FAILED), width=1)
    actions = [p.action for p in search.rounds(6)]
    assert actions == [Action.DRAFT, Action.REPAIR, Action.REPAIR] * 2


def test_a_passing_one_gets_one_change_of_its_best_point():
    search = sample(lambda p: ended(p, 0.5 if p.action is Action.SWEEP else 1.0, TUNABLES), width=1)
    search.rounds(1)
    (sweep,) = search.ask(1, free=True)
    search.tell(sweep.id)
    first, second = search.rounds(2)
    assert (first.action, first.parents) == (Action.OPTIMISE, (sweep.id,))
    assert second.action is Action.DRAFT


def test_a_failed_change_is_not_mended():
    search = sample(lambda p: ended(p, 1.0 if p.action is Action.DRAFT else FAILED), width=1)
    actions = [p.action for p in search.rounds(4)]
    assert actions == [Action.DRAFT, Action.OPTIMISE] * 2
