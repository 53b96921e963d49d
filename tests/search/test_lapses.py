"""Calls that fail by themselves: nothing was tried, so nothing is repaired or counted."""

from dataclasses import replace

import pytest

from hotloop.core.attempt import Action
from hotloop.core.space import Space
from hotloop.core.verdict import Evidence, Status
from hotloop.search.hybrid import HybridStrategy
from hotloop.search.lineage import LAPSES, Lineage
from hotloop.search.progress import progress
from hotloop.search.refine import RefineStrategy
from hotloop.search.sample import SampleStrategy
from hotloop.testing.scripted_search import ScriptedSearch, by_chance, ended

DRAFT, REPAIR, OPTIMISE = Action.DRAFT, Action.REPAIR, Action.OPTIMISE
REGENERATE = Action.REGENERATE
FAILED = Status.INCORRECT_NUMERICAL
CALL_FAILED, REFUSED, NO_KERNEL = "call_failed", "refused", "no_code"
NOT_JUDGED = "not_judged"

ALL = pytest.mark.parametrize("strategy_class", [HybridStrategy, RefineStrategy, SampleStrategy])
BY_ITSELF = pytest.mark.parametrize("kind", [CALL_FAILED, REFUSED, NOT_JUDGED])


def without_code(proposal, kind):
    status = Status.INCONCLUSIVE if kind == NOT_JUDGED else Status.NO_CODE
    outcome = ended(proposal, status)
    evidence = Evidence(kind=kind, message="no kernel came")
    return replace(outcome, verdict=replace(outcome.verdict, evidence=evidence))


def as_listed(results):
    """Return a script by which attempts end as listed by id: a time, a status, or a kind."""

    def script(proposal):
        result = results[proposal.id]
        is_kind = type(result) is str
        return without_code(proposal, result) if is_kind else ended(proposal, result)

    return script


def search_of(strategy_class, script, **options):
    strategy = strategy_class(Space(dimensions=()), 0, **options)
    return ScriptedSearch(strategy=strategy, script=script)


def steps(strategy_class, results):
    """Return what is proposed one by one, up to the call after the last that is listed."""
    search = search_of(strategy_class, as_listed(results), width=1)
    proposed = search.rounds(len(results)) + search.ask(1)
    return [(p.action, *p.parents) for p in proposed]


@ALL
@BY_ITSELF
def test_a_failed_call_is_not_repaired(strategy_class, kind):
    assert steps(strategy_class, {1: kind}) == [(DRAFT,), (DRAFT,)]


@pytest.mark.parametrize("strategy_class", [RefineStrategy, SampleStrategy])
def test_a_reply_without_a_kernel_is_repaired(strategy_class):
    assert steps(strategy_class, {1: NO_KERNEL}) == [(DRAFT,), (REPAIR, 1)]


@BY_ITSELF
def test_a_failed_call_uses_up_no_repair(kind):
    results = {1: FAILED, 2: kind, 3: FAILED, 4: kind, 5: FAILED, 6: FAILED}
    assert steps(RefineStrategy, results) == [
        (DRAFT,),
        (REPAIR, 1),
        (REPAIR, 1),
        (REPAIR, 3),
        (REPAIR, 3),
        (REPAIR, 5),
        (DRAFT,),
    ]


def test_other_strategies_ask_for_the_repair_again_too():
    assert steps(SampleStrategy, {1: FAILED, 2: CALL_FAILED})[-1] == (REPAIR, 1)
    tries = {1: 1.0, 2: FAILED}
    assert steps(HybridStrategy, tries | {3: CALL_FAILED})[-2:] == [(REPAIR, 2), (REPAIR, 2)]
    assert steps(HybridStrategy, tries | {3: NO_KERNEL})[-2:] == [(REPAIR, 2), (REPAIR, 3)]


@pytest.mark.parametrize("strategy_class", [RefineStrategy, SampleStrategy])
def test_what_is_refused_each_time_is_left(strategy_class):
    results = {1: FAILED} | dict.fromkeys(range(2, 2 + LAPSES), REFUSED)
    assert steps(strategy_class, results) == [(DRAFT,), *[(REPAIR, 1)] * LAPSES, (DRAFT,)]


def test_the_one_change_of_a_sample_is_asked_for_again_but_not_for_ever():
    assert steps(SampleStrategy, {1: 1.0, 2: CALL_FAILED, 3: 2.0}) == [
        (DRAFT,),
        (OPTIMISE, 1),
        (OPTIMISE, 1),
        (DRAFT,),
    ]
    results = {1: 1.0} | dict.fromkeys(range(2, 2 + LAPSES), REFUSED)
    assert steps(SampleStrategy, results)[-1] == (DRAFT,)


@pytest.mark.parametrize("strategy_class", [RefineStrategy, HybridStrategy])
def test_failed_calls_bring_no_plateau(strategy_class):
    correct = {1: 1.0}
    assert steps(strategy_class, correct | dict.fromkeys(range(2, 7), CALL_FAILED))[-1] == (
        OPTIMISE,
        1,
    )
    assert steps(strategy_class, correct | dict.fromkeys(range(2, 6), 2.0))[-1] == (REGENERATE, 1)


@pytest.mark.parametrize(
    ("kind", "stale"), [(CALL_FAILED, 1), (REFUSED, 1), (NOT_JUDGED, 1), (NO_KERNEL, 2)]
)
def test_only_replies_are_stale_turns(kind, stale):
    lineage = Lineage()
    lineage.tell(ended(lineage.propose(DRAFT), 1.0))
    (draft,) = lineage.concluded
    lineage.tell(ended(lineage.propose(OPTIMISE, draft), 2.0))
    lineage.tell(without_code(lineage.propose(OPTIMISE, draft), kind))
    assert progress(lineage.concluded).stale == stale


@ALL
@pytest.mark.parametrize("seed", range(8))
def test_restored_goes_on_like_live(strategy_class, seed):
    def script(proposal):
        outcome = by_chance(seed)(proposal)
        return without_code(proposal, CALL_FAILED) if proposal.id % 3 == 0 else outcome

    live = search_of(strategy_class, script)
    live.play(seed, 60)
    restored = search_of(strategy_class, script)
    restored.attempts, restored.now_s = dict(live.attempts), live.now_s
    restored.strategy.restore(list(live.attempts.values()))
    assert restored.play(seed + 1, 40) == live.play(seed + 1, 40)
