"""Answers and verdicts from outside that nobody waits for: the run ends, and goes on later."""

import pytest
from model_bench import ModelBench, fast_verifier

from hotloop.core.attempt import Action
from hotloop.core.verdict import Tier
from hotloop.engine import StopReason
from hotloop.errors import Pending
from hotloop.testing.fake_model import FakeCall, block_of_64
from hotloop.testing.fakes import FakeVerifier, RecordingListener


def unanswered(*answered):
    """A folder in which only some prompts have their reply."""

    def script(proposal):
        if proposal.id in answered:
            return block_of_64(proposal)
        file = f"{proposal.id}.prompt"
        return FakeCall(error=Pending(f"{file} awaits its answer", waiting=(file,)))

    return script


def outside_bench(script, **changes):
    return ModelBench(script, is_outside=True, **changes)


def test_prompts_are_left_to_be_answered_and_the_run_goes_on_later():
    bench = outside_bench(unanswered(2), calls=3, plan={"drafts": 6, "sweeps": 2})
    result = bench.run()
    assert result.reason is StopReason.WAITING
    # The answered one frees its slot for the next; three are awaited at a time.
    assert result.waiting == ("1.prompt", "3.prompt", "4.prompt")
    assert bench.store.notes("stopped")[-1]["waiting"] == list(result.waiting)
    assert bench.listener.payloads("stopped")[-1]["waiting"] == result.waiting
    assert [p["waiting"] for p in bench.listener.payloads("waiting")] == [result.waiting]
    assert len(bench.attempts(Action.SWEEP)) == 2
    assert [a.id for a in result.attempts if a.verdict is None] == [1, 3, 4]
    assert bench.verifier.verified(Tier.FINAL) == []
    assert not result.passed

    again = bench.resumed(script=block_of_64)
    result = again.run()
    assert sorted(again.generator.begun[:3]) == [1, 3, 4]
    assert result.reason is StopReason.EXHAUSTED
    assert result.waiting == ()
    assert again.verifier.verified(Tier.FINAL) != []
    assert result.passed


def test_an_answer_that_cannot_be_read_is_told_each_time_and_costs_no_call():
    def script(proposal):
        error = Pending("no answer", waiting=("1.prompt",), fault="1.reply is empty; write it")
        return FakeCall(error=error)

    bench = outside_bench(script, calls=1, plan={"drafts": 2})
    again = None
    for number in (1, 2):
        again = bench if again is None else again.resumed()
        result = again.run()
        assert (result.reason, result.calls) == (StopReason.WAITING, 0)
        told = [note["message"] for note in again.store.notes("warning")]
        assert told == ["1.reply is empty; write it"] * number
    answered = again.resumed(script=block_of_64)
    assert answered.run().reason is StopReason.EXHAUSTED


def test_what_is_wrong_with_an_answer_that_several_await_is_told_once():
    def script(proposal):
        number = 1 if proposal.id < 3 else proposal.id  # the first two await the same one
        fault = f"{number}.reply is empty; write it"
        return FakeCall(error=Pending("no answer", waiting=(f"{number}.prompt",), fault=fault))

    bench = outside_bench(script, calls=3, plan={"drafts": 3})
    assert bench.run().waiting == ("1.prompt", "3.prompt")
    told = sorted(note["message"] for note in bench.store.notes("warning"))
    assert told == ["1.reply is empty; write it", "3.reply is empty; write it"]


def test_nothing_answered_yet_is_waiting_again():
    bench = outside_bench(unanswered(), calls=2, plan={"drafts": 5})
    first = bench.run()
    again = bench.resumed()
    assert again.run().waiting == first.waiting == ("1.prompt", "2.prompt")
    assert sorted(again.generator.begun) == [1, 2]
    for session, is_new in ((bench, True), (again, False)):
        assert [p["is_new"] for p in session.listener.payloads("asking")] == [is_new] * 2
    assert len(again.attempts()) == 2


def test_a_full_run_with_open_answers_waits_for_them():
    bench = outside_bench(unanswered(1), calls=4, plan={"drafts": 9})
    result = bench.run(max_candidates=3)
    assert result.reason is StopReason.WAITING
    assert len(result.attempts) == 3
    assert bench.resumed(script=block_of_64).run(max_candidates=3).reason is StopReason.CANDIDATES


class Elsewhere(FakeVerifier):
    """A judge by bundles: what it does not know yet is pending."""

    known = frozenset({"load", "fast", "final"})

    def load(self, problem):
        if "load" not in self.known:
            raise Pending("the problem is in the bundle", waiting=("run.bundle",))
        return super().load(problem)

    def build(self, candidate):
        raise Pending("built where it is judged")

    def verify(self, candidate, tier):
        self.calls.append((f"asked-{tier.value}", candidate.id))
        if tier.value not in self.known:
            raise Pending(f"{candidate.id} is in the bundle", waiting=("run.bundle",))
        return super().verify(candidate, tier)

    def knows(self, *what):
        self.known = frozenset(what)
        return self


def elsewhere(*known):
    return Elsewhere(clock=fast_verifier().clock).knows(*known)


def test_a_problem_that_is_loaded_elsewhere_costs_nothing():
    bench = ModelBench(block_of_64, plan={"drafts": 2}, verifier=elsewhere())
    result = bench.run()
    assert (result.reason, result.waiting) == (StopReason.WAITING, ("run.bundle",))
    assert bench.store.notes("setup") == []
    assert bench.generator.begun == []
    assert bench.listener.kinds() == ["waiting", "stopped"]
    assert bench.store.notes("stopped")[-1]["reason"] == "waiting"
    assert bench.resumed(verifier=elsewhere("load", "fast", "final")).run().passed


def test_candidates_are_judged_elsewhere_step_by_step():
    bench = ModelBench(block_of_64, plan={"drafts": 3}, verifier=elsewhere("load"))
    result = bench.run()
    assert (result.reason, result.waiting) == (StopReason.WAITING, ("run.bundle",))
    assert "is in the bundle" in result.detail
    assert [a.verdict for a in result.attempts] == [None] * 3
    assert all(a.candidate_id for a in result.attempts)

    again = bench.resumed(verifier=elsewhere("load", "fast"))
    result = again.run()
    drafts = {a.candidate_id for a in again.attempts(Action.DRAFT)}
    assert set(again.verifier.verified(Tier.FAST)[:3]) == drafts
    assert {1, 2, 3}.isdisjoint(again.generator.begun)
    assert result.reason is StopReason.WAITING
    assert None not in [a.verdict for a in result.attempts]
    assert result.final is None

    last = bench.resumed(verifier=elsewhere("load", "fast", "final"))
    result = last.run()
    assert last.verifier.verified(Tier.FAST) == []
    assert result.reason is StopReason.EXHAUSTED
    assert result.passed
    assert bench.resumed().run() == result


def test_close_candidates_reach_the_final_tier_elsewhere_together():
    bench = ModelBench(block_of_64, plan={"drafts": 3}, verifier=elsewhere("load", "fast"))
    bench.run()
    asked = [c for call, c in bench.verifier.calls if call == "asked-final"]
    assert len(asked) == len(set(asked)) == 3


def test_what_awaits_a_verdict_is_limited():
    from hotloop.engine.pipeline import MAX_PARKED

    bench = ModelBench(block_of_64, plan={"drafts": 500}, verifier=elsewhere("load"))
    result = bench.run()
    assert result.reason is StopReason.WAITING
    assert MAX_PARKED <= len(result.attempts) <= MAX_PARKED + 2 * bench.calls


def test_sweeps_that_await_a_verdict_beside_a_model_are_few():
    from hotloop.engine.pipeline import MAX_PARKED_SWEEPS

    bench = outside_bench(unanswered(2), calls=2, plan={"drafts": 6, "sweeps": 40})
    bench.verifier = elsewhere("load", "fast")
    sweep = bench.verifier.verify

    def verify(candidate, tier):  # the drafts have their verdicts, the sweeps await theirs
        if candidate.pins.get("BLOCK") == 32:
            raise Pending("in the bundle", waiting=("run.bundle",))
        return sweep(candidate, tier)

    bench.verifier.verify = verify
    bench.run()
    waiting = [a for a in bench.attempts(Action.SWEEP) if a.verdict is None]
    assert MAX_PARKED_SWEEPS <= len(waiting) <= MAX_PARKED_SWEEPS + 2 * bench.calls


def test_schedules_are_judged_elsewhere_too(bench):
    bench.verifier = elsewhere("load")
    first = bench.run(max_candidates=5)
    assert first.reason is StopReason.WAITING
    assert len(first.attempts) == 5
    # The bench's own resumed() makes a judge that knows everything.
    result = bench.resumed(listener=RecordingListener()).run(max_candidates=5)
    assert result.reason is StopReason.CANDIDATES
    assert result.passed


@pytest.mark.parametrize("script", [unanswered(), block_of_64])
def test_a_waiting_run_always_goes_on(script):
    bench = outside_bench(unanswered(), plan={"drafts": 1})
    bench.run(wall_s=100.0, max_candidates=9)
    again = bench.resumed(script=script)
    again.run(wall_s=50.0, max_candidates=2)
    assert 1 in again.generator.begun
