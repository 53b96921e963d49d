"""What calls that were cut cost is noted whatever ends the run."""

import math

import pytest
from model_bench import ModelBench

from hotloop.core.attempt import Action
from hotloop.core.verdict import Tier
from hotloop.errors import EndpointDown, InfraError
from hotloop.testing.fake_model import FakeCall, block_of_64


def one_and_then_silence(proposal):
    if proposal.id > 1:
        return FakeCall(seconds=math.inf)
    return block_of_64(proposal)


def raising(error, tier):
    def on_verify(candidate, at):
        if at is tier:
            raise error

    return on_verify


def raising_again(verifier, error):
    """A machine that is gone loads no problem either."""

    def on_load():
        if verifier.calls:
            raise error

    return on_load


@pytest.mark.parametrize("tier", [Tier.FAST, Tier.FINAL])
@pytest.mark.parametrize("error", [InfraError("the machine is gone"), KeyboardInterrupt()])
def test_an_error_does_not_lose_what_cut_calls_cost(tier, error):
    bench = ModelBench(one_and_then_silence, calls=2, plan={"drafts": 9})
    bench.verifier.on_verify = raising(error, tier)
    bench.verifier.on_load = raising_again(bench.verifier, error)
    if isinstance(error, KeyboardInterrupt):
        bench.run(wall_s=60.0)
    else:
        with pytest.raises(InfraError):
            bench.run(wall_s=60.0)
    noted = {note["attempt"]: note["usd"] for note in bench.store.notes("call_cost")}
    assert set(noted) == set(bench.generator.begun) >= {1, 2}
    assert noted.pop(1) == 0.01
    assert set(noted.values()) == {None}


def test_a_call_that_ends_the_run_does_not_lose_what_the_others_cost():
    def script(proposal):
        if proposal.id == 1:
            return FakeCall(seconds=10.0, error=EndpointDown("nobody answers"))
        return FakeCall(seconds=math.inf)

    bench = ModelBench(script, calls=3, plan={"drafts": 3})
    with pytest.raises(EndpointDown):
        bench.run()
    noted = bench.store.notes("call_cost")
    assert {(n["attempt"], n["calls"], n["usd"]) for n in noted} == {(2, 1, None), (3, 1, None)}
    assert [a.id for a in bench.attempts(Action.DRAFT)] == [1, 2, 3]
