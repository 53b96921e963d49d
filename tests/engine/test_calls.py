"""Model calls beside builds and verifications: overlap, slots, slow calls, no code."""

import math
import threading

import pytest
from model_bench import ModelBench, fast_verifier

from hotloop.core.attempt import Action, Proposal
from hotloop.core.verdict import Stage, Status, Tier
from hotloop.engine import StopReason
from hotloop.engine.calls import MIN_STRAGGLER_S, Calls
from hotloop.errors import AuthError, NotRecorded
from hotloop.testing.fake_model import FakeCall, FakeModelGenerator, FastClock, block_of_64
from hotloop.testing.fakes import Costs, FakeVerifier, make_problem

POINT = {"BLOCK": 64, "num_warps": 4, "split": False}


def overlap(spans):
    """The most spans that were open at one time."""
    edges = sorted([(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans])
    open_now = most = 0
    for _, step in edges:
        open_now += step
        most = max(most, open_now)
    return most


@pytest.mark.parametrize("calls", [1, 3])
def test_as_many_calls_as_allowed_run_at_a_time(calls):
    bench = ModelBench(block_of_64, calls=calls, plan={"drafts": 6})
    result = bench.run()
    assert overlap(bench.generator.spans.values()) == calls
    assert result.reason is StopReason.EXHAUSTED
    assert result.passed
    assert len(result.attempts) == 12
    assert {a.verdict.status for a in result.attempts} == {Status.PASSED}


def test_kernels_are_verified_while_calls_are_under_way():
    def script(proposal):
        return FakeCall(
            seconds=100.0 if proposal.id == 2 else 5.0, point={**POINT, "by": proposal.id}
        )

    bench = ModelBench(script, calls=2, plan={"drafts": 2, "sweeps": 6})
    verified_s = []
    bench.verifier.on_verify = lambda candidate, tier: verified_s.append(bench.verifier.clock())
    bench.run()
    began_s, ended_s = bench.generator.spans[2]
    # The first draft, what it led to, and all sweeps.
    assert sum(began_s < at < ended_s for at in verified_s) == 8


def test_sweeps_stop_where_the_queue_is_full_and_calls_come_first():
    order = []
    bench = ModelBench(block_of_64, calls=1, plan={"drafts": 3, "sweeps": 40})
    bench.verifier.costs = Costs(fast_s=2.0)
    bench.verifier.on_verify = lambda candidate, tier: order.append(candidate.pins["by"])
    bench.run()
    action = {a.id: a.action for a in bench.attempts()}
    assert len(bench.attempts(Action.SWEEP)) == 40
    begun = [n for n in bench.generator.begun]
    assert begun == [n for n in action if action[n] != Action.SWEEP]
    # A kernel that a model wrote does not wait behind the sweeps that were queued before it.
    second_draft = begun[1]
    before = order[: order.index(second_draft)]
    assert any(n > second_draft for n in before), "no sweep was verified during the call"


def test_an_attempt_is_in_the_journal_before_its_call():
    seen = {}

    def script(proposal):
        seen[proposal.id] = {a.id: a for a in bench.store.attempts()}.get(proposal.id)
        return block_of_64(proposal)

    bench = ModelBench(script, plan={"drafts": 2})
    result = bench.run()
    assert {(a.candidate_id, a.verdict) for a in seen.values()} == {(None, None)}
    assert [p["attempt"].id for p in bench.listener.payloads("asking")] == list(seen)
    done = result.attempts[0]
    assert done.asked.template == "first"
    assert done.declared.dimensions[0].name == "num_warps"


def test_what_a_kernel_declares_is_told_to_the_strategy():
    bench = ModelBench(block_of_64, plan={"drafts": 1})
    told = []

    class Listening(bench.strategy):
        def tell(self, outcome):
            told.append(outcome.declared)
            super().tell(outcome)

    bench.strategy = Listening
    bench.run()
    assert [d.dimensions[0].name for d in told] == ["num_warps", "num_warps"]


def test_an_answer_without_code_is_an_attempt_without_code():
    bench = ModelBench(
        lambda p: FakeCall() if p.action == Action.DRAFT else block_of_64(p), plan={"drafts": 1}
    )
    result = bench.run()
    first, second = result.attempts
    assert first.verdict.status is Status.NO_CODE
    assert first.verdict.stage is Stage.EXTRACT
    assert first.verdict.evidence.kind == "no_code"
    assert (first.candidate_id, first.verdict.candidate_id) == (None, "")
    assert second.action == Action.REPAIR
    assert result.passed
    assert len(bench.verifier.verified(Tier.FAST)) == 1


def test_the_same_kernel_twice_is_verified_once():
    bench = ModelBench(lambda p: FakeCall(point=POINT), plan={"drafts": 4})
    result = bench.run()
    assert len(result.attempts) == 8
    assert len(bench.verifier.verified(Tier.FAST)) == 1


def test_a_kernel_to_begin_with_needs_no_call():
    class Starts(ModelBench(block_of_64).strategy):
        def ask(self, n, *, free=False):
            if self._next_id > 1:
                return super().ask(n, free=free)
            self._next_id = 2
            self._open[1] = Action.START
            return [Proposal(id=1, action=Action.START, point={**POINT, "num_warps": 8})]

    bench = ModelBench(block_of_64, plan={"drafts": 1}, strategy=Starts)
    result = bench.run()
    assert [a.action for a in result.attempts] == [Action.START, Action.DRAFT, Action.OPTIMISE]
    assert bench.generator.begun == [2, 3]
    assert result.best_attempt_id == 1


def test_a_call_that_cannot_be_made_at_all_ends_the_run():
    def script(proposal):
        if proposal.id == 3:
            return FakeCall(seconds=20.0, error=AuthError("the key was withdrawn"))
        return block_of_64(proposal)

    bench = ModelBench(script, calls=3, plan={"drafts": 6})
    with pytest.raises(AuthError, match="withdrawn"):
        bench.run()
    assert bench.store.notes("stopped")[-1]["reason"] == "failed"
    again = bench.resumed(script=block_of_64)
    assert again.run().passed
    assert 3 in again.generator.begun
    assert {1, 2}.isdisjoint(again.generator.begun)


def test_the_end_of_a_recording_ends_the_calls_and_nothing_else():
    def script(proposal):
        if proposal.id > 3:
            return FakeCall(error=NotRecorded("the recording ends here"))
        return block_of_64(proposal)

    bench = ModelBench(script, calls=2, plan={"drafts": 9, "sweeps": 3})
    result = bench.run()
    assert result.reason is StopReason.EXHAUSTED
    assert sum(a.verdict is not None and a.verdict.passed for a in result.attempts) == 6
    assert result.final.passed
    assert bench.resumed().run() == result


def slow_ones(*slow):
    def script(proposal):
        seconds = math.inf if proposal.id in slow else 20.0
        return FakeCall(seconds=seconds, point={**POINT, "by": proposal.id})

    return script


def test_a_straggler_is_given_up():
    bench = ModelBench(slow_ones(2), calls=2, plan={"drafts": 7})
    result = bench.run()
    assert bench.generator.cancelled == [2]
    lost = result.attempts[1]
    assert (lost.verdict.status, lost.verdict.evidence.kind) == (Status.NO_CODE, "call_failed")
    began_s, ended_s = bench.generator.spans[2]
    assert ended_s - began_s > MIN_STRAGGLER_S
    assert sum(a.verdict.passed for a in result.attempts) == len(result.attempts) - 1


@pytest.mark.parametrize(
    ("calls", "is_outside", "drafts"), [(1, False, 6), (2, True, 6), (2, False, 2)]
)
def test_a_slow_call_is_kept(calls, is_outside, drafts):
    """Where nothing could run instead, where a person answers, where too few have finished."""

    def script(proposal):
        seconds = 75.0 if proposal.id == drafts else 5.0
        return FakeCall(seconds=seconds, point={**POINT, "by": proposal.id})

    bench = ModelBench(script, calls=calls, is_outside=is_outside, plan={"drafts": drafts})
    result = bench.run()
    assert bench.generator.cancelled == []
    assert all(a.verdict.passed for a in result.attempts)


def test_the_first_request_to_stop_cancels_the_calls():
    bench = ModelBench(slow_ones(3, 4), plan={"drafts": 4})
    bench.verifier.on_verify = lambda candidate, tier: bench.stop.request()
    result = bench.run()
    assert result.reason is StopReason.INTERRUPTED
    assert {3, 4} <= set(bench.generator.cancelled)
    left = [a.id for a in result.attempts if a.verdict is None]
    assert {3, 4} <= set(left)
    again = bench.resumed(script=block_of_64)
    result = again.run()
    assert {3, 4} <= set(again.generator.begun)  # 1 or 2 had its answer, whichever was not judged
    assert all(a.verdict.passed for a in result.attempts)


def test_a_request_to_stop_is_heard_while_only_calls_are_under_way():
    bench = ModelBench(slow_ones(1, 2), plan={"drafts": 2})
    timer = threading.Timer(0.1, bench.stop.request)
    timer.start()
    result = bench.run()
    assert result.reason is StopReason.INTERRUPTED
    assert sorted(bench.generator.cancelled) == [1, 2]


def test_no_slot_is_an_error():
    with pytest.raises(ValueError, match="at least one model call"):
        Calls(FakeModelGenerator(FastClock()), 0, clock=FastClock())


def test_without_a_model_asking_is_as_before(bench):
    asked = []

    class Counting(bench.strategy):
        def ask(self, n, *, free=False):
            asked.append((len(bench.verifier.verified(Tier.FAST)), free))
            return super().ask(n, free=free)

    bench.strategy = Counting
    bench.run(max_candidates=6)
    # One for the verifier and one for each of two lanes, then one after each verdict.
    assert asked == [(0, False)] * 3 + [(1, False), (2, False), (3, False)]
    assert bench.listener.kinds().count("asking") == 0


def test_a_problem_for_a_model_needs_no_final_tier_on_cpu():
    bench = ModelBench(block_of_64, plan={"drafts": 1}, verifier=fast_verifier(device="cpu"))
    assert bench.run().passed
    assert isinstance(bench.verifier, FakeVerifier)
    assert make_problem().policy.precision == bench.attempts()[0].verdict.precision_policy
