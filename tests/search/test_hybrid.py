import random
from collections import Counter

from hotloop.core.attempt import Action
from hotloop.core.space import Space
from hotloop.core.verdict import Status
from hotloop.search.hybrid import HybridStrategy
from hotloop.search.refine import RefineStrategy
from hotloop.testing.scripted_search import TUNABLES, ScriptedSearch, ended
from hotloop.testing.suites import ModelStrategySuite

DRAFT, REPAIR, OPTIMISE, REGENERATE = (
    Action.DRAFT,
    Action.REPAIR,
    Action.OPTIMISE,
    Action.REGENERATE,
)
CRASH, WRONG = Status.RUNTIME_ERROR, Status.INCORRECT_NUMERICAL


class TestHybridStrategy(ModelStrategySuite):
    def make(self, space, seed, *, width, has_start):
        return HybridStrategy(space, seed, width=width, has_start=has_start)


def hybrid(script, **options):
    strategy = HybridStrategy(Space(dimensions=()), 0, **options)
    return ScriptedSearch(strategy=strategy, script=script)


def listed(results, otherwise=CRASH):
    """Return a script by which attempts end as listed by id."""
    return lambda p: ended(p, results.get(p.id, otherwise))


def steps(proposals):
    return [(p.action, *p.parents) for p in proposals]


def conclude(search, *ids):
    for proposal_id in ids:
        search.tell(proposal_id)


def test_begins_with_one_draft_for_each_idea():
    proposed = hybrid(listed({})).ask(100)
    assert [(p.action, p.point) for p in proposed] == [(DRAFT, {"idea": k}) for k in range(4)]


def test_mends_each_failing_chain_then_draws_anew():
    search = hybrid(listed({}), width=2)
    proposed = search.rounds(9)
    assert steps(proposed[2:8]) == [(REPAIR, failed) for failed in range(1, 7)]
    assert [(p.action, p.point) for p in proposed[8:10]] == [
        (DRAFT, {"idea": 2}),
        (DRAFT, {"idea": 3}),
    ]
    assert [(p.action, p.point) for p in proposed[16:]] == [(DRAFT, {})] * 2, "no idea is left"


def test_ideas_come_before_repairs_where_slots_are_few():
    search = hybrid(listed({}))
    taken = []
    for _ in range(6):
        taken += search.ask(1)
        conclude(search, taken[-1].id)
    assert [p.action for p in taken] == [DRAFT] * 4 + [REPAIR] * 2


def test_what_got_further_up_the_ladder_is_mended_first():
    search = hybrid(listed({1: Status.COMPILE_ERROR, 2: WRONG, 3: Status.COMPILE_ERROR, 4: WRONG}))
    search.rounds(1)
    assert [p.parents for p in search.ask(100)] == [(2,), (4,), (1,), (3,)]


def test_the_first_correct_kernel_ends_drafts_and_deep_repairs():
    search = hybrid(listed({3: 1.0}))
    search.ask(2)
    conclude(search, 1, 2)
    search.ask(2)
    conclude(search, 3)
    proposed = search.ask(100)
    assert steps(proposed) == [(OPTIMISE, 3)] * 3, "1 and 2 crashed: they are left, 4 is under way"


def test_a_shallow_failure_gets_one_more_repair_in_an_idle_slot():
    search = hybrid(listed({1: 1.0, 2: WRONG, 3: CRASH, 4: CRASH, 5: 1.0, 6: 1.0, 7: WRONG}))
    search.rounds(1)
    proposed = search.ask(100)
    assert steps(proposed) == [(OPTIMISE, 1), (OPTIMISE, 1), (REPAIR, 2), (OPTIMISE, 1)]
    conclude(search, 5, 6, 7, 8)
    assert (REPAIR, 7) not in steps(search.ask(100)), "it had its one"


def test_the_best_three_designs_share_the_calls_and_the_best_gets_most():
    search = hybrid(listed({1: 4.0, 2: 3.0, 3: 2.0, 4: 1.0}))
    search.rounds(1)
    assert Counter(steps(search.ask(100))) == {(OPTIMISE, 4): 2, (OPTIMISE, 3): 1, (OPTIMISE, 2): 1}


def test_shares_hold_where_calls_are_made_one_by_one():
    objectives = {1: 4.0, 2: 3.0, 3: 2.0}
    designs = {1: 1, 2: 2, 3: 3}

    def script(proposal):
        if proposal.parents:
            objectives[proposal.id] = 0.95 * objectives[proposal.parents[0]]
            designs[proposal.id] = designs[proposal.parents[0]]
        return ended(proposal, objectives[proposal.id])

    search = hybrid(script, width=3)
    search.rounds(1)
    taken = []
    for _ in range(8):
        taken += search.ask(1)
        conclude(search, taken[-1].id)
    assert Counter(designs[p.id] for p in taken) == {3: 4, 2: 2, 1: 2}


def test_a_failed_try_is_mended_twice_before_going_back():
    search = hybrid(listed({1: 1.0}), width=1)
    assert steps(search.rounds(5)) == [
        (DRAFT,),
        (OPTIMISE, 1),
        (REPAIR, 2),
        (REPAIR, 3),
        (OPTIMISE, 1),
    ]


def test_a_failed_try_is_left_once_its_chain_has_a_faster_kernel():
    search = hybrid(listed({1: 1.0, 2: CRASH, 3: 0.5}), width=2)
    search.ask(1)
    conclude(search, 1)
    search.ask(2)
    conclude(search, 3, 2)
    assert steps(search.ask(1)) == [(OPTIMISE, 3)]


def test_after_a_plateau_the_design_is_regenerated_and_the_new_one_improved():
    results = {1: 1.0, 7: 1.5}
    search = hybrid(lambda p: ended(p, results.get(p.id, CRASH if p.id == 6 else 2.0)), width=1)
    assert steps(search.rounds(8)) == [
        (DRAFT,),
        *[(OPTIMISE, 1)] * 4,
        (REGENERATE, 1),
        (REPAIR, 6),
        (OPTIMISE, 7),
    ]


def test_restarts_from_the_best_when_every_design_is_on_a_plateau():
    search = hybrid(lambda p: ended(p, 1.0 if p.id == 1 else 2.0), width=1)
    proposed = search.rounds(40)
    designs = [p for p in proposed if p.action is REGENERATE]
    assert len(designs) >= 5
    assert designs[0].parents == (1,)
    assert designs[-1].parents == (1,)


def test_a_swept_point_that_is_faster_is_improved_next():
    search = hybrid(lambda p: ended(p, 0.5 if p.action is Action.SWEEP else 1.0, TUNABLES), width=1)
    search.rounds(1)
    (sweep,) = search.ask(1, free=True)
    conclude(search, sweep.id)
    assert steps(search.ask(1)) == [(OPTIMISE, sweep.id)]


def test_a_failed_start_is_mended_beside_drafts_of_ideas():
    search = hybrid(listed({}), has_start=True)
    search.rounds(1)
    proposed = search.ask(100)
    assert steps(proposed) == [(REPAIR, 1), (DRAFT,), (DRAFT,), (DRAFT,)]
    assert [p.point for p in proposed[1:]] == [{"idea": k} for k in range(3)]


class World:
    """Designs of which some come right after a few repairs, and some never."""

    def __init__(self, seed):
        self.seed = seed
        self.roots = {}
        self.depth = {}

    def __call__(self, proposal):
        parent = proposal.parents[0] if proposal.parents else None
        is_root = proposal.action in (DRAFT, REGENERATE)
        self.roots[proposal.id] = proposal.id if is_root else self.roots[parent]
        self.depth[proposal.id] = 0 if is_root else self.depth[parent] + 1
        rng = random.Random(f"{self.seed}/{self.roots[proposal.id]}")
        needed = rng.choice([1, 2, 3, 99, 99, 99, 99])
        return ended(proposal, 1.0 if self.depth[proposal.id] >= needed else WRONG)


def rounds_to_first_correct(strategy_class, seed):
    strategy = strategy_class(Space(dimensions=()), 0)
    search = ScriptedSearch(strategy=strategy, script=World(seed))
    for count in range(1, 100):
        search.rounds(1)
        if any(a.verdict.passed for a in search.attempts.values()):
            return count
    raise AssertionError("nothing came right in 99 rounds")


def test_finds_a_correct_kernel_in_fewer_rounds_than_refining():
    wide = [rounds_to_first_correct(HybridStrategy, seed) for seed in range(20)]
    deep = [rounds_to_first_correct(RefineStrategy, seed) for seed in range(20)]
    assert sum(wide) < 0.6 * sum(deep)
    assert max(wide) <= max(deep)


def test_a_gain_within_noise_asks_for_no_second_new_design():
    objectives, designs = {1: 1.0, 2: 3.0}, {1: 1, 2: 2}

    def script(proposal):
        if proposal.action in (REGENERATE, REPAIR):
            return ended(proposal, CRASH)
        if proposal.parents:
            (parent,) = proposal.parents
            designs[proposal.id] = designs[parent]
            late = 0.999 if proposal.id == 3 else 2.0
            objectives[proposal.id] = late if designs[parent] == 1 else 0.98 * objectives[parent]
        return ended(proposal, objectives[proposal.id])

    search = hybrid(script, width=2)
    search.rounds(1)

    def count_new_designs(rounds, which):
        for _ in range(rounds):
            search.ask(2)
            conclude(search, search.open_ids()[which])
        return sum(a.action == REGENERATE for a in search.attempts.values())

    assert count_new_designs(20, -1) == 1, "the first try on 1 is still open, four others are stale"
    conclude(search, 3)
    assert count_new_designs(20, 0) == 1
