"""An endpoint that is down for long: a wait that is told, and costs no budget."""

import threading

import pytest
from model_bench import ModelBench

from hotloop.core.attempt import Action
from hotloop.engine import StopReason
from hotloop.engine.outage import LONGEST_WAIT_S, Outage
from hotloop.errors import BadReply, EndpointDown
from hotloop.testing.fake_model import FakeCall, block_of_64

DOWN = EndpointDown("nobody answers")


class Endpoint:
    """Answers, is down for some calls, and answers again."""

    def __init__(self, answers, down, error=DOWN):
        self.left = [False] * answers + [True] * down
        self.error = error
        self.mutex = threading.Lock()

    def __call__(self, proposal):
        with self.mutex:
            is_down = self.left.pop(0) if self.left else False
        return FakeCall(seconds=1.0, error=self.error) if is_down else block_of_64(proposal)


def outages(bench):
    return [n["message"] for n in bench.store.notes("warning") if "asked again in" in n["message"]]


def test_the_run_waits_and_goes_on_with_the_same_attempts():
    bench = ModelBench(Endpoint(2, 3), calls=1, plan={"drafts": 4})
    result = bench.run(wall_s=600.0)
    drafts = bench.attempts(Action.DRAFT)
    assert [a.id for a in drafts] == sorted({a.id for a in drafts})
    assert len(drafts) == 4
    assert all(a.verdict.passed for a in drafts)
    assert len(outages(bench)) == 3
    assert "EndpointDown: nobody answers; asked again in" in outages(bench)[0]
    assert bench.listener.payloads("warning")
    assert result.passed


def test_the_wait_costs_no_budget():
    bench = ModelBench(Endpoint(1, 1), calls=1, plan={"drafts": 3}, outage_s=1.0)
    result = bench.run(wall_s=150.0)
    assert bench.verifier.clock() - result.spent_s > 150.0, "a wait of 200 s on this clock"
    assert len(bench.attempts(Action.DRAFT)) == 3
    assert result.reason is not StopReason.WALL


def test_calls_at_the_same_time_are_one_outage():
    endpoint, together = Endpoint(3, 3), threading.Barrier(3, timeout=30.0)

    def script(proposal):
        call = endpoint(proposal)
        if call.error is not None:
            together.wait()
        return call

    bench = ModelBench(script, calls=3, plan={"drafts": 9}, outage_s=2.0)
    bench.run(wall_s=600.0)
    assert len(outages(bench)) == 1
    assert all(a.verdict.passed for a in bench.attempts(Action.DRAFT))


def test_a_user_can_end_the_wait():
    bench = ModelBench(Endpoint(1, 99), calls=1, plan={"drafts": 3}, outage_s=60.0)
    real = bench.listener

    def listen(event):
        real(event)
        if event.kind == "warning":
            bench.stop.request()

    bench.listener = listen
    assert bench.run(wall_s=600.0).reason is StopReason.INTERRUPTED
    open_ids = [a.id for a in bench.attempts(Action.DRAFT) if a.verdict is None]
    assert len(open_ids) == 1, "it is asked for again by the next session"


@pytest.mark.parametrize("answers", [0, 2])
def test_what_waiting_does_not_cure_ends_the_run(answers):
    """An address that never answered; and answers, one after the other, that were of no use."""
    error = EndpointDown("5 calls in a row failed")
    if answers:
        error.__cause__ = BadReply("no JSON")
    bench = ModelBench(Endpoint(answers, 1, error), calls=1, plan={"drafts": 4})
    with pytest.raises(EndpointDown):
        bench.run(wall_s=600.0)
    assert outages(bench) == []


def test_waits_grow_up_to_a_quarter_of_an_hour():
    outage = Outage(first_wait_s=0.0)
    assert not outage.may_pass(DOWN)
    outage.answered()
    assert outage.may_pass(DOWN)
    long = Outage(first_wait_s=LONGEST_WAIT_S)
    assert long.begin() == LONGEST_WAIT_S
    assert long.is_on
    assert long.begin() is None
    growing = Outage(first_wait_s=0.001)
    waits = []
    while len(waits) < 4:
        wait_s = growing.begin()
        if wait_s is not None:
            waits.append(wait_s)
    assert waits == [0.001, 0.002, 0.004, 0.008]
