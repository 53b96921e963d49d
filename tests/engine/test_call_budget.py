"""Time, tokens and dollars of model calls: none starts that cannot end, and no second is dead."""

import math

import pytest
from model_bench import ModelBench, fast_verifier

from hotloop.core.attempt import Action, Budget, Spent
from hotloop.core.verdict import Tier
from hotloop.engine import StopReason
from hotloop.engine.costs import CallCosts
from hotloop.engine.limits import FINAL_FIXED_S, FINAL_PER_FAST, Meter
from hotloop.store.memory import MemoryStore
from hotloop.testing.fake_model import FakeCall, block_of_64
from hotloop.testing.fakes import Costs, FakeClock

POINT = {"BLOCK": 64, "num_warps": 4, "split": False}


def gauge(store=None, clock=None, has_final=True, **budget):
    return Meter(
        Budget(**budget), store or MemoryStore(), clock=clock or FakeClock(), has_final=has_final
    )


def test_a_call_starts_only_if_it_can_end_and_be_verified_before_the_final_tier():
    clock = FakeClock()
    meter = gauge(clock=clock, wall_s=200.0)
    assert meter.allows_call()
    meter.observe(Tier.FAST, 4.0)
    for seconds in (30.0, 40.0, 90.0):
        meter.observe_call(seconds, Spent(calls=1, call_s=seconds))
    reserve_s = FINAL_FIXED_S + 4.0 * FINAL_PER_FAST
    clock.advance(200.0 - reserve_s - 4.0 - 40.0)
    assert meter.allows_call()
    assert meter.call_deadline_s() == pytest.approx(40.0)
    clock.advance(0.5)
    assert not meter.allows_call()
    assert meter.allows_fast()


def test_the_first_call_may_start_while_there_is_time():
    clock = FakeClock()
    meter = gauge(clock=clock, wall_s=20.0)
    clock.advance(20.0 - FINAL_FIXED_S - 1.0)
    assert meter.allows_call()
    clock.advance(1.0)
    assert not meter.allows_call()


def test_without_a_limit_a_call_has_no_deadline():
    assert gauge().call_deadline_s() is None
    assert gauge().allows_call()


def test_an_answer_that_was_there_already_says_nothing_of_the_next():
    meter = gauge(wall_s=100.0, has_final=False)
    meter.observe_call(0.1, Spent(calls=1, call_s=90.0))
    meter.observe_call(95.0, Spent(calls=1, call_s=90.0))
    assert meter.allows_call()
    meter.observe_call(105.0, Spent(calls=1, call_s=105.0))
    meter.observe_call(105.0, Spent(calls=1, call_s=105.0))
    assert not meter.allows_call()


ANSWERED = Spent(calls=1, tokens=70, usd=0.25, call_s=3.0)
CUT = Spent(calls=1, tokens=None, usd=None)


def test_costs_of_all_sessions_are_summed_and_no_answer_twice():
    store = MemoryStore()
    first = gauge(store)
    first.charge(1, Spent(calls=2, tokens=100, usd=0.5, call_s=3.0))
    first.charge(2, ANSWERED)
    # It died before the attempt was concluded: the journal has the answer, and it is noted again.
    again = gauge(store)
    again.charge(2, ANSWERED)
    again.charge(3, Spent())
    assert (again.spent_tokens(), again.spent_usd()) == (170, 0.75)
    assert gauge(store).spent_tokens() == 170
    assert [note["attempt"] for note in store.notes("call_cost")] == [1, 2, 2]


def test_a_call_that_was_paid_twice_counts_twice():
    store = MemoryStore()
    gauge(store).charge(1, Spent(calls=1, tokens=50, usd=0.5))
    gauge(store).charge(1, ANSWERED)
    gauge(store).charge(1, ANSWERED)
    assert (gauge(store).spent_tokens(), gauge(store).spent_usd()) == (120, 0.75)
    assert store.notes("call_cost")[-1]["calls"] == 2


def test_what_a_cut_call_cost_stays_unknown_when_it_is_answered_later():
    store = MemoryStore()
    gauge(store).charge(1, CUT)
    for _ in range(2):
        gauge(store).charge(1, ANSWERED)
        assert gauge(store).spent_tokens() is None
        assert gauge(store).spent_usd() is None
        assert store.notes("call_cost")[-1]["calls"] == 2
    assert CallCosts(store).calls == 2


def test_two_calls_that_were_cut_without_a_word_are_two():
    store = MemoryStore()
    gauge(store).charge(1, CUT)
    gauge(store).charge(1, CUT)
    assert CallCosts(store).calls == 2


def test_an_unknown_cost_counts_as_a_typical_one_once_a_price_is_known():
    meter = gauge(max_usd=1.0, max_tokens=10_000)
    for attempt_id in (1, 2, 3):
        meter.charge(attempt_id, CUT)
    assert meter.allows_usd(8)
    meter.charge(4, ANSWERED)
    assert not meter.allows_usd(0)
    assert meter.allows_tokens(0)


def test_known_costs_fill_the_limit_to_the_end():
    meter = gauge(max_usd=1.0)
    for attempt_id in (1, 2, 3):
        meter.charge(attempt_id, ANSWERED)
    assert meter.allows_usd(0)
    assert not meter.allows_usd(1)


def test_a_sum_with_an_unknown_part_is_unknown():
    store = MemoryStore()
    meter = gauge(store, max_tokens=1000)
    assert (meter.spent_tokens(), meter.spent_usd()) == (0, 0.0)
    meter.charge(1, Spent(calls=1, tokens=100, usd=0.5))
    assert meter.charge(2, Spent(calls=1, tokens=None, usd=None)) != []
    assert meter.charge(3, Spent(calls=1, tokens=None, usd=None)) == []
    assert meter.spent_tokens() is None
    assert meter.spent_usd() is None
    assert gauge(store).spent_usd() is None


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        ({"max_tokens": 450}, StopReason.TOKENS),
        ({"max_usd": 0.045}, StopReason.USD),
        ({"max_calls": 4}, StopReason.CALLS),
    ],
)
def test_a_limit_on_calls_holds_and_free_work_goes_on(budget, reason):
    bench = ModelBench(block_of_64, calls=1, plan={"drafts": 9, "sweeps": 3})
    result = bench.run(**budget)
    assert result.reason is reason
    assert len(bench.generator.begun) == 4
    assert (result.calls, result.tokens, result.usd) == (4, 400, pytest.approx(0.04))
    assert len(bench.attempts(Action.SWEEP)) == 3
    assert result.final.passed
    assert None not in [a.verdict for a in result.attempts]

    again = bench.resumed()
    assert again.run(**budget) == result
    assert again.generator.begun == []
    more = bench.resumed()
    more.run(**{name: 2 * limit for name, limit in budget.items()})
    assert 0 < len(more.generator.begun) <= 5


def test_calls_side_by_side_keep_to_the_limit_once_one_has_its_price():
    bench = ModelBench(block_of_64, calls=4, plan={"drafts": 40})
    result = bench.run(max_tokens=1050)
    assert result.tokens == 1000
    told = [p["spent_tokens"] for p in bench.listener.payloads("budget")]
    assert told == sorted(told)
    assert told[-1] == 1000


def test_an_unknown_cost_counts_as_nothing_and_is_said_once():
    bench = ModelBench(
        lambda p: FakeCall(point={**POINT, "by": p.id}, tokens=None, usd=None), plan={"drafts": 3}
    )
    result = bench.run(max_tokens=10, max_usd=0.001)
    assert len(result.attempts) == 6
    assert (result.tokens, result.usd) == (None, None)
    told = [note["message"] for note in bench.store.notes("warning")]
    assert len(told) == 2
    assert all("cannot hold" in message for message in told)
    assert "max_tokens=10" in told[0]


def test_an_unknown_cost_is_no_warning_where_nothing_is_limited():
    bench = ModelBench(lambda p: FakeCall(tokens=None, usd=None), plan={"drafts": 2})
    bench.run()
    assert bench.listener.payloads("warning") == []


def test_the_end_of_the_budget_goes_to_sweeps_and_the_final_tier():
    def script(proposal):
        return FakeCall(seconds=50.0, point={**POINT, "by": proposal.id})

    bench = ModelBench(script, calls=2, plan={"drafts": 99, "sweeps": 1000})
    bench.verifier.costs = Costs(fast_s=10.0, final_s=60.0)
    result = bench.run(wall_s=300.0)
    assert result.reason is StopReason.WALL
    assert result.final.passed
    last_call_s = max(begin for begin, _ in bench.generator.spans.values())
    assert max(end for _, end in bench.generator.spans.values()) < 300.0
    swept_s = [a.finished_s for a in bench.attempts(Action.SWEEP) if a.finished_s]
    assert max(swept_s) > last_call_s
    # What is left over is less than one verification; one final may take longer than expected.
    # The clock is a real one, stretched: steps of 10 s end a few hundredths off.
    assert 300.0 - 10.0 - 10.0 - 0.5 <= result.spent_s <= 300.0 + 60.0
    assert all(d is not None and 0 < d < 300.0 for d in bench.generator.deadlines_s.values())


def test_a_call_that_cannot_end_within_the_budget_ends_with_it():
    bench = ModelBench(lambda p: FakeCall(seconds=math.inf), calls=2, plan={"drafts": 99})
    result = bench.run(wall_s=60.0)
    assert result.reason is StopReason.WALL
    assert result.spent_s < 60.0 + 40.0
    assert len(bench.generator.begun) == 2
    (limit_s, _) = bench.generator.deadlines_s.values()
    assert limit_s == pytest.approx(60.0 - FINAL_FIXED_S, abs=5.0)


def test_the_clock_stands_while_only_answers_from_outside_are_awaited():
    def script(proposal):
        return FakeCall(seconds=80.0, point={**POINT, "by": proposal.id})

    bench = ModelBench(script, is_outside=True, calls=2, plan={"drafts": 2})
    bench.verifier.costs = Costs(fast_s=4.0, final_s=20.0)
    result = bench.run(wall_s=80.0)
    assert result.passed
    assert result.reason is StopReason.EXHAUSTED
    assert bench.verifier.clock() > 160.0
    assert 4 * 4.0 <= result.spent_s - 20.0 <= 80.0
    assert bench.store.spent_s() == result.spent_s
    assert set(bench.generator.deadlines_s.values()) == {None}


def test_the_clock_runs_while_a_paid_answer_is_awaited():
    bench = ModelBench(
        lambda p: FakeCall(seconds=20.0), plan={"drafts": 1}, verifier=fast_verifier()
    )
    assert bench.run().spent_s >= 40.0


def test_a_stopped_clock_survives_a_heartbeat():
    clock, store = FakeClock(), MemoryStore()
    with gauge(store, clock, wall_s=100.0) as meter:
        clock.advance(3.0)
        with meter.paused():
            clock.advance(1000.0)
            meter.save()
            assert meter.spent_s() == store.spent_s() == 3.0
        clock.advance(4.0)
        assert meter.remaining_s() == 93.0
    assert store.spent_s() == 7.0


def test_what_cancelled_calls_may_have_cost_is_unknown():
    bench = ModelBench(lambda p: FakeCall(seconds=math.inf), calls=2, plan={"drafts": 2})
    result = bench.run(wall_s=40.0)
    assert result.calls == 2
    assert (result.tokens, result.usd) == (None, None)
