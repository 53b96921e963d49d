import os
import signal
import threading
import time

import pytest

from hotloop.core.verdict import Tier
from hotloop.engine import StopFlag, StopReason, interrupts
from hotloop.engine.lanes import Lanes
from hotloop.testing.fakes import SMALL_SPACE, Costs


def at_verification(number, action):
    seen = []

    def on_verify(candidate, tier):
        seen.append(candidate.id)
        if len(seen) == number:
            action()

    return on_verify


def test_the_first_request_drains(bench):
    bench.verifier.on_verify = at_verification(5, bench.stop.request)
    result = bench.run(wall_s=1000.0)
    assert result.reason is StopReason.INTERRUPTED
    assert len(bench.verifier.verified(Tier.FAST)) == 5
    assert sum(a.verdict is not None for a in result.attempts) == 5
    assert len(bench.verifier.verified(Tier.FINAL)) == 1
    assert result.passed


def test_draining_skips_a_final_tier_that_the_budget_does_not_allow(bench):
    bench.verifier.costs = Costs(fast_s=10.0, final_s=8.0)
    bench.verifier.on_verify = at_verification(3, bench.stop.request)
    result = bench.run(wall_s=90.0)
    assert result.reason is StopReason.INTERRUPTED
    assert bench.verifier.verified(Tier.FINAL) == []
    assert not result.passed
    assert result.best_attempt_id is not None


def test_the_second_request_stops_without_a_final_tier(bench):
    def twice():
        bench.stop.request()
        bench.stop.request()

    bench.verifier.on_verify = at_verification(5, twice)
    result = bench.run(wall_s=1000.0)
    assert result.reason is StopReason.INTERRUPTED
    assert len(bench.verifier.verified(Tier.FAST)) == 5
    assert bench.verifier.verified(Tier.FINAL) == []


def test_stopping_at_once_does_not_wait_for_builds(bench):
    release = threading.Event()
    first = SMALL_SPACE.complete(SMALL_SPACE.starts[0])

    def build(candidate):
        if candidate.pins != first:
            release.wait(30.0)

    def twice():
        bench.stop.request()
        bench.stop.request()

    bench.verifier.on_build = build
    bench.verifier.on_verify = at_verification(1, twice)
    began_s = time.monotonic()
    bench.run()
    assert time.monotonic() - began_s < Lanes.QUIESCE_S
    release.set()


def test_an_interrupted_run_goes_on(bench):
    bench.verifier.on_verify = at_verification(5, bench.stop.request)
    bench.run()
    result = bench.resumed().run()
    assert result.reason is StopReason.EXHAUSTED
    assert len(result.attempts) == 48
    assert result.passed


def test_a_request_during_a_build_is_heard_before_the_next_verification(bench):
    bench.verifier.on_build = lambda candidate: bench.stop.request()
    result = bench.run()
    assert bench.verifier.verified(Tier.FAST) == []
    assert result.reason is StopReason.INTERRUPTED


def test_one_signal_drains(bench):
    bench.verifier.on_verify = at_verification(3, lambda: os.kill(os.getpid(), signal.SIGINT))
    with interrupts(bench.stop):
        result = bench.run()
    assert result.reason is StopReason.INTERRUPTED
    assert result.passed
    assert len(bench.verifier.verified(Tier.FAST)) == 3


def pressing_twice(bench):
    """Return what presses Ctrl-C twice, then hangs."""

    def press_twice_and_hang():
        os.kill(os.getpid(), signal.SIGINT)
        while not bench.stop.draining:
            time.sleep(0.01)  # two that come at once are one
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait(30.0)

    return press_twice_and_hang


def test_two_signals_break_out_of_a_blocked_verification(bench):
    bench.verifier.on_verify = at_verification(3, pressing_twice(bench))
    with interrupts(bench.stop):
        result = bench.run()
    assert result.reason is StopReason.INTERRUPTED
    assert sum(a.verdict is not None for a in result.attempts) == 2
    assert bench.store.spent_s() == result.spent_s
    assert bench.resumed(stop=StopFlag()).run().passed


def test_two_signals_break_out_of_a_load_that_hangs(bench):
    bench.verifier.on_load = pressing_twice(bench)
    with interrupts(bench.stop):
        result = bench.run()
    assert (result.reason, result.attempts) == (StopReason.INTERRUPTED, ())
    assert bench.store.notes("stopped")[-1]["reason"] == StopReason.INTERRUPTED
    assert bench.resumed(stop=StopFlag()).run().passed


def test_a_hanging_build_does_not_hold_up_the_second_signal(bench):
    release = threading.Event()
    bench.verifier.on_build = lambda candidate: release.wait(30.0)
    presses = [
        threading.Timer(delay_s, os.kill, (os.getpid(), signal.SIGINT)) for delay_s in (0.05, 0.15)
    ]
    with interrupts(bench.stop):
        for press in presses:
            press.start()
        result = bench.run()
    release.set()
    assert result.reason is StopReason.INTERRUPTED
    assert bench.verifier.verified(Tier.FAST) == []


def test_former_handlers_come_back():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    stop = StopFlag()
    with interrupts(stop):
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.draining
        assert not stop.now
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert stop.now
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_the_first_request_does_not_wait_for_a_hanging_build(bench):
    release = threading.Event()
    bench.verifier.on_build = lambda candidate: release.wait(30.0)
    timer = threading.Timer(0.05, bench.stop.request)
    timer.start()
    began_s = time.monotonic()
    result = bench.run(max_candidates=1)
    release.set()
    assert result.reason is StopReason.INTERRUPTED
    assert time.monotonic() - began_s < Lanes.QUIESCE_S + 15.0  # the build hangs for longer
