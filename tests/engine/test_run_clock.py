"""What a run has spent, across crashes, stops of the process, and changes of the time of day."""

import threading
import time

import pytest

from hotloop.engine.run_clock import HEARTBEAT_S, SUSPENDED_S, RunClock
from hotloop.store.memory import MemoryStore
from hotloop.testing.fakes import FakeClock
from hotloop.testing.store_suite import conclude, make_attempt

HOUR_S = 3600.0


class Beaten(MemoryStore):
    """Says when it was told of spent seconds."""

    def __init__(self):
        super().__init__()
        self.told = threading.Event()

    def spend(self, seconds):
        super().spend(seconds)
        self.told.set()


@pytest.fixture
def clock():
    return FakeClock()


def running(store, clock) -> RunClock:
    # The heart is as good as still: the test asks often enough.
    return RunClock(store, clock, heartbeat_s=2.0, pulse=clock)


def work(gauge, clock, seconds, step_s=1.0):
    for _ in range(round(seconds / step_s)):
        clock.advance(step_s)
        gauge.spent_s()


@pytest.mark.parametrize("stopped_s", [SUSPENDED_S + 1, 120.0, 10 * HOUR_S])
def test_a_stop_of_the_process_is_not_counted(clock, stopped_s):
    store = MemoryStore()
    with running(store, clock) as gauge:
        work(gauge, clock, 10)
        clock.advance(stopped_s)
        assert gauge.spent_s() == 10
        work(gauge, clock, 5)
        assert gauge.spent_s() == 15
    assert store.spent_s() == 15


def test_work_without_a_question_counts_up_to_the_threshold(clock):
    with running(MemoryStore(), clock) as gauge:
        clock.advance(SUSPENDED_S)
        assert gauge.spent_s() == SUSPENDED_S


def test_a_stop_during_a_pause_is_not_taken_off_twice(clock):
    with running(MemoryStore(), clock) as gauge:
        work(gauge, clock, 10)
        with gauge.paused():
            clock.advance(100.0)
            assert gauge.spent_s() == 10
            clock.advance(100.0)
        assert gauge.spent_s() == 10


def test_a_slow_disk_is_no_stop(clock):
    class Slow(MemoryStore):
        def spend(self, seconds):
            super().spend(seconds)
            clock.advance(60.0)

    with running(Slow(), clock) as gauge:
        work(gauge, clock, 3)
        gauge.save()
        assert gauge.spent_s() == 63


def test_a_crash_miscounts_a_heartbeat_at_most():
    store = Beaten()
    gauge = RunClock(store, time.monotonic, heartbeat_s=0.05)
    gauge.__enter__()
    assert store.told.wait(5)
    assert gauge.spent_s() - store.spent_s() < 0.05 + 1.0
    gauge._ended.set()
    gauge._heart.join()
    assert HEARTBEAT_S <= 5.0
    after = RunClock(store, time.monotonic)
    assert after.spent_s() == pytest.approx(store.spent_s(), abs=0.5)


def test_after_a_crash_the_clock_does_not_fall_behind_what_was_found(clock):
    store = MemoryStore()
    attempt, candidate = make_attempt(1)
    store.propose(attempt, candidate)
    store.conclude(conclude(attempt))
    (found,) = store.attempts()
    assert found.finished_s > 0 == store.spent_s()
    with running(store, clock) as gauge:
        assert gauge.spent_s() == found.finished_s
        work(gauge, clock, 4)
    assert store.spent_s() == found.finished_s + 4


@pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S])
def test_the_time_of_day_does_not_matter(monkeypatch, jump_s):
    real = time.time
    store = MemoryStore()
    with RunClock(store, time.monotonic) as gauge:
        monkeypatch.setattr(time, "time", lambda: real() + jump_s)
        assert 0 <= gauge.spent_s() < 60
    assert 0 <= store.spent_s() < 60


def test_pauses_that_overlap_are_taken_off_once(clock):
    with running(MemoryStore(), clock) as gauge:
        work(gauge, clock, 10)
        with gauge.paused():
            clock.advance(5.0)
            with gauge.paused():
                clock.advance(5.0)
            clock.advance(5.0)
            assert gauge.spent_s() == 10
        work(gauge, clock, 3)
        assert gauge.spent_s() == 13
