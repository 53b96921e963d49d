import math
import time

import pytest

from hotloop.core.attempt import Budget
from hotloop.core.verdict import Tier
from hotloop.engine import StopReason
from hotloop.engine.limits import FINAL_FIXED_S, FINAL_PER_FAST, HEARTBEAT_S, Meter
from hotloop.errors import StoreError
from hotloop.store.memory import MemoryStore
from hotloop.testing.fakes import Costs, FakeClock, FakeGenerator
from hotloop.testing.strategy_suite import HUGE_SPACE


def endless(bench, **costs):
    bench.generator = FakeGenerator(HUGE_SPACE)
    bench.verifier.behaviour = lambda point, tier: 1.0 + sum(point.values())
    bench.verifier.costs = Costs(**costs)
    return bench


@pytest.mark.parametrize(
    ("wall_s", "fast_s"), [(60.0, 1.0), (60.0, 0.3), (900.0, 7.0), (20.0, 4.0)]
)
def test_the_budget_is_used_and_kept(bench, wall_s, fast_s):
    final_s = FINAL_FIXED_S + FINAL_PER_FAST * fast_s
    result = endless(bench, fast_s=fast_s, final_s=final_s).run(wall_s=wall_s)
    assert result.reason is StopReason.WALL
    assert result.final.passed
    if final_s < wall_s / 2:
        assert wall_s - 2 * fast_s <= result.spent_s <= wall_s
    else:
        assert result.spent_s <= wall_s / 2 + final_s


def test_a_final_tier_slower_than_estimated_overruns_by_itself_only(bench):
    result = endless(bench, fast_s=1.0, final_s=30.0).run(wall_s=60.0)
    assert result.final.passed
    assert len(bench.verifier.verified(Tier.FINAL)) == 1
    assert 60.0 <= result.spent_s <= 60.0 + 30.0


def test_setup_is_reported_apart_and_not_charged(bench):
    result = endless(bench, load_s=500.0, fast_s=1.0, final_s=8.0).run(wall_s=60.0)
    assert result.setup_s == pytest.approx(500.0)
    assert result.spent_s <= 60.0
    assert len(result.attempts) > 30


def test_on_cpu_nothing_is_kept_back(cpu_bench):
    result = endless(cpu_bench, fast_s=1.0).run(wall_s=20.0)
    concluded = [a for a in result.attempts if a.verdict is not None]
    assert len(concluded) == 20
    assert result.spent_s == pytest.approx(20.0)


def test_attempts_say_when_they_started_and_ended(bench):
    result = endless(bench, fast_s=2.0, final_s=8.0).run(max_candidates=3)
    assert [a.finished_s for a in result.attempts] == [2.0, 4.0, 6.0]
    assert all(a.started_s <= a.finished_s for a in result.attempts)


def meter(store, clock, heartbeat_s=60.0, **budget):
    return Meter(Budget(**budget), store, clock=clock, has_final=True, heartbeat_s=heartbeat_s)


def test_the_reserve_follows_what_was_measured():
    clock = FakeClock()
    with meter(MemoryStore(), clock, wall_s=1000.0) as gauge:
        assert gauge.reserve_s() == FINAL_FIXED_S
        for seconds in (2.0, 3.0, 100.0):
            gauge.observe(Tier.FAST, seconds)
        assert gauge.reserve_s() == FINAL_FIXED_S + FINAL_PER_FAST * 3.0
        gauge.observe(Tier.FINAL, 40.0)
        assert gauge.reserve_s() == 40.0


def test_the_reserve_leaves_half_of_a_short_budget():
    with meter(MemoryStore(), FakeClock(), wall_s=4.0) as gauge:
        assert gauge.reserve_s() == 2.0
        assert gauge.allows_fast()


def test_without_a_limit_everything_is_allowed():
    clock = FakeClock()
    with meter(MemoryStore(), clock) as gauge:
        clock.advance(1e6)
        assert gauge.remaining_s() == math.inf
        assert gauge.allows_fast()
        assert gauge.allows_final()


def test_what_is_spent_is_written_while_the_run_is_busy():
    clock, store = FakeClock(), MemoryStore()
    store.spend(10.0)
    with meter(store, clock, heartbeat_s=0.01) as gauge:
        clock.advance(3.0)
        deadline_s = time.monotonic() + 5.0
        while store.spent_s() < 13.0 and time.monotonic() < deadline_s:
            time.sleep(0.01)
        assert store.spent_s() == 13.0
        clock.advance(2.0)
        assert gauge.spent_s() == 15.0
    assert store.spent_s() == 15.0


def test_the_heartbeat_is_within_five_seconds():
    assert HEARTBEAT_S <= 5.0


def test_a_store_that_fails_in_the_background_stops_the_run():
    class Full(MemoryStore):
        def spend(self, seconds):
            raise StoreError("the disk is full")

    clock = FakeClock()
    gauge = meter(Full(), clock, heartbeat_s=0.01)

    def run():
        with gauge:
            clock.advance(1.0)
            deadline_s = time.monotonic() + 5.0
            while time.monotonic() < deadline_s:
                gauge.spent_s()
                time.sleep(0.01)

    with pytest.raises(StoreError, match="disk is full"):
        run()
