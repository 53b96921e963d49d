from dataclasses import replace

import pytest

from hotloop.core.space import Space
from hotloop.core.verdict import Status, Tier
from hotloop.engine import StopReason
from hotloop.search.tune import TuneStrategy
from hotloop.testing.fakes import SMALL_SPACE, FakeGenerator, small_latency_ms


class Dies(BaseException):
    """Stands for the death of the process: nothing in the engine may catch it."""


def die_after(count):
    calls = []

    def behaviour(point, tier):
        calls.append(point)
        if len(calls) > count:
            raise Dies
        return small_latency_ms(point, tier)

    return behaviour


def test_pending_attempts_are_verified_first_and_nothing_twice(bench):
    bench.verifier.behaviour = die_after(4)
    with pytest.raises(Dies):
        bench.run(max_candidates=10)
    before = list(bench.store.attempts())
    pending = [a.candidate_id for a in before if a.verdict is None]
    assert len(pending) == 3

    again = bench.resumed()
    again.verifier.behaviour = small_latency_ms
    result = again.run(max_candidates=10)
    assert again.verifier.verified(Tier.FAST)[:3] == pending
    done = {a.candidate_id for a in before if a.verdict is not None}
    assert done.isdisjoint(again.verifier.verified(Tier.FAST))
    assert len(result.attempts) == 10
    assert len({a.candidate_id for a in result.attempts}) == 10


def test_spent_seconds_of_all_sessions_count(bench):
    bench.verifier.behaviour = die_after(10)
    with pytest.raises(Dies):
        bench.run(wall_s=60.0)
    assert bench.store.spent_s() == pytest.approx(11.0)

    again = bench.resumed()
    again.verifier.behaviour = small_latency_ms
    result = again.run(wall_s=60.0)
    assert 45.0 <= result.spent_s <= 60.0
    assert result.setup_s == pytest.approx(20.0)


def test_a_finished_run_returns_its_stored_result_at_once(bench):
    first = bench.run(wall_s=30.0)
    assert first.reason is StopReason.WALL
    again = bench.resumed()
    assert again.run(wall_s=30.0) == first
    assert again.verifier.calls == []
    assert again.verifier.clock() == 0.0
    assert again.listener.kinds() == ["stopped"]


def test_a_smaller_budget_is_spent_too(bench):
    first = bench.run(max_candidates=6)
    assert bench.resumed().run(max_candidates=4) == first


@pytest.mark.parametrize(
    ("first", "second"),
    [({"wall_s": 30.0}, {"wall_s": 60.0}), ({"max_candidates": 4}, {"max_candidates": 9})],
)
def test_a_larger_budget_goes_on(bench, first, second):
    before = bench.run(**first)
    after = bench.resumed().run(**second)
    assert len(after.attempts) > len(before.attempts)
    assert after.passed
    objective = {a.id: a.objective for a in after.attempts}
    assert objective[after.best_attempt_id] <= objective[before.best_attempt_id]


def test_an_exhausted_run_is_over_whatever_the_budget(bench):
    first = bench.run(wall_s=1000.0)
    again = bench.resumed()
    assert again.run(wall_s=2000.0) == first
    assert again.verifier.calls == []


def test_a_candidate_with_a_final_verdict_is_not_verified_there_again(bench):
    bench.run(max_candidates=48)
    again = bench.resumed()
    again.store = bench.store
    bench.store.note("stopped", {"reason": "interrupted", "budget": {}, "message": None})
    result = again.run(max_candidates=48)
    assert again.verifier.verified(Tier.FINAL) == []
    assert again.verifier.verified(Tier.FAST) == []
    assert result.final.passed


def test_a_run_killed_before_its_final_tier_gets_it_after_the_budget(bench):
    def behaviour(point, tier):
        if tier is Tier.FINAL:
            raise Dies
        return small_latency_ms(point, tier)

    bench.verifier.behaviour = behaviour
    with pytest.raises(Dies):
        bench.run(wall_s=30.0)
    bench.store.spend(100.0)
    again = bench.resumed()
    again.verifier.behaviour = small_latency_ms
    result = again.run(wall_s=30.0)
    assert again.verifier.verified(Tier.FAST) == []
    assert len(again.verifier.verified(Tier.FINAL)) == 1
    assert result.passed


def test_restored_verdicts_teach_the_strategy(bench):
    bench.strategy = TuneStrategy
    bench.verifier.behaviour = die_after(20)
    with pytest.raises(Dies):
        bench.run()
    again = bench.resumed()
    again.verifier.behaviour = small_latency_ms
    result = again.run()
    assert len(result.attempts) == 48
    assert len({str(a.point) for a in result.attempts}) == 48
    assert sum(a.verdict.status is Status.PASSED for a in result.attempts) == 45


def test_verdicts_of_earlier_sessions_are_not_paid_for_again(bench):
    class Same(FakeGenerator):
        def generate(self, info, proposal, *, deadline_s=None):
            return super().generate(info, replace(proposal, point=dict(SMALL_SPACE.complete({}))))

    bench.generator = Same()
    bench.run(max_candidates=2)
    again = bench.resumed()
    result = again.run(max_candidates=5)
    assert again.verifier.calls == []
    assert [a.objective for a in result.attempts] == [result.attempts[0].objective] * 5


def test_best_is_announced_only_when_it_beats_earlier_sessions(bench):
    best_first = Space(
        dimensions=SMALL_SPACE.dimensions,
        starts=({"BLOCK": 64, "num_warps": 8, "split": False},),
    )
    bench.generator = FakeGenerator(best_first)
    bench.run(max_candidates=1)
    again = bench.resumed()
    again.run(max_candidates=9)
    assert bench.listener.kinds().count("best") == 1
    assert again.listener.kinds().count("best") == 0
