"""A build or a verification that takes longer than the whole budget."""

import threading

import pytest

from hotloop.core.verdict import Tier
from hotloop.engine import StopReason
from hotloop.errors import WorkerTimeout
from hotloop.testing.fakes import Costs


def test_a_build_that_outlasts_the_budget_is_not_awaited(cpu_bench):
    release = threading.Event()

    def build(candidate):
        cpu_bench.verifier.clock.advance(20.0)
        release.wait(30.0)

    cpu_bench.verifier.on_build = build
    result = cpu_bench.run(wall_s=12.0)
    release.set()
    assert result.reason is StopReason.WALL
    assert cpu_bench.verifier.verified(Tier.FAST) == []
    assert "before a verification could start" in result.detail
    assert {a.verdict for a in result.attempts} == {None}


def test_a_verification_that_outlasts_the_budget_is_the_last_and_is_named(cpu_bench):
    cpu_bench.verifier.costs = Costs(fast_s=70.0)
    result = cpu_bench.run(wall_s=12.0)
    assert result.reason is StopReason.WALL
    assert len(cpu_bench.verifier.verified(Tier.FAST)) == 1
    assert result.detail == "one verification took 70 s of a budget of 12 s"
    assert cpu_bench.listener.payloads("stopped")[-1]["message"] == result.detail
    assert cpu_bench.resumed().run(wall_s=12.0).detail == result.detail


def test_a_budget_spent_on_many_verifications_needs_no_words(cpu_bench):
    result = cpu_bench.run(wall_s=12.0)
    assert result.reason is StopReason.WALL
    assert result.detail is None


@pytest.mark.parametrize(("cost_s", "calls"), [(20.0, 1), (1.0, 3)])
def test_a_machine_fault_is_retried_only_while_there_is_time(cpu_bench, cost_s, calls):
    def fail(candidate, tier):
        cpu_bench.verifier.clock.advance(cost_s)
        raise WorkerTimeout("the judge did not answer")

    def load_no_more():
        if cpu_bench.verifier.calls:
            raise WorkerTimeout("the judge did not answer")

    cpu_bench.verifier.on_verify = fail
    cpu_bench.verifier.on_load = load_no_more
    with pytest.raises(WorkerTimeout):
        cpu_bench.run(wall_s=12.0)
    assert len(cpu_bench.verifier.verified(Tier.FAST)) == calls
