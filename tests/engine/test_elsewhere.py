"""A judge elsewhere whose verdicts are carried by hand: budgets that end meanwhile, refusals."""

import math

import pytest
from model_bench import ModelBench

from hotloop.core.verdict import Status, Tier
from hotloop.engine import StopReason
from hotloop.errors import Pending
from hotloop.testing.fake_model import FakeCall, FastClock, block_of_64
from hotloop.testing.fakes import Costs, FakeVerifier

FREE = Costs(load_s=0.0, fast_s=0.0, final_s=0.0)


@pytest.fixture(autouse=True)
def _answers_from_the_journal_are_quick(monkeypatch):
    # A second of the fast clock is 5 ms, which a busy machine may need for an answer.
    monkeypatch.setattr("hotloop.engine.search.FREE_S", 20.0)


class Carried(FakeVerifier):
    """Notes what it is asked for, and knows what was judged elsewhere."""

    store = None
    judged = ()
    """Tiers of which verdicts came back."""
    refused = ()
    """Candidates that the other machine could not judge."""

    def verify(self, candidate, tier):
        if tier in self.judged and candidate.id not in self.refused:
            return super().verify(candidate, tier)
        note = {"problem_id": "fake", "candidate_id": candidate.id, "tier": tier.value}
        if note not in self.store.notes("outside_wanted"):
            self.store.note("outside_wanted", note)
        raise Pending(f"{candidate.id} is in the bundle")


def carried(*judged, store, refused=()):
    verifier = Carried(clock=FastClock(), costs=FREE)
    verifier.judged, verifier.store, verifier.refused = judged, store, refused
    return verifier


def going_on(bench, *judged, refused=()):
    return bench.resumed(verifier=carried(*judged, store=bench.store, refused=refused))


def refuse(bench, candidate_id, **more):
    note = {"problem_id": "fake", "candidate_id": candidate_id, "error": "DeviceLost"}
    bench.store.note("outside_error", {**note, "message": "no GPU", **more})


def two_and_then_silence(proposal):
    if proposal.id > 2:
        return FakeCall(seconds=math.inf)
    return block_of_64(proposal)


def out_of_time():
    """A run whose wall budget ended while two candidates awaited their fast verdicts."""
    bench = ModelBench(two_and_then_silence, calls=2, plan={"drafts": 9})
    bench.verifier = carried(store=bench.store)
    bench.generator._clock = bench.verifier.clock
    return bench, bench.run(wall_s=40.0)


def wanted(bench, tier):
    return [n["candidate_id"] for n in bench.store.notes("outside_wanted") if n["tier"] == tier]


def test_verdicts_that_come_after_the_end_of_the_budget_count():
    bench, result = out_of_time()
    assert bench.store.spent_s() >= 30.0
    assert result.reason is StopReason.WAITING
    assert "is in the bundle" in result.detail
    written = [a.candidate_id for a in result.attempts if a.candidate_id]
    assert sorted(wanted(bench, "fast")) == sorted(written), "in the order in which calls ended"
    assert len(written) == 2

    # Nothing has come back: it goes on waiting, and asks for nothing new.
    assert going_on(bench).run(wall_s=40.0).reason is StopReason.WAITING

    again = going_on(bench, Tier.FAST)
    result = again.run(wall_s=40.0)
    assert again.generator.begun == []
    assert result.reason is StopReason.WAITING
    assert sum(a.verdict is not None for a in result.attempts) == 2
    # Both are equally fast: both are asked for, though there is no time left here.
    assert set(wanted(bench, "final")) == set(written)

    last = going_on(bench, Tier.FAST, Tier.FINAL)
    result = last.run(wall_s=40.0)
    assert result.reason is StopReason.WALL
    assert result.passed
    assert len(last.verifier.verified(Tier.FINAL)) == 2
    assert going_on(bench).run(wall_s=40.0).reason is StopReason.WALL


def test_a_refused_candidate_does_not_keep_a_run_whose_budget_ended():
    bench, result = out_of_time()
    first, second = wanted(bench, "fast")
    refuse(bench, first)
    result = going_on(bench, Tier.FAST, Tier.FINAL, refused=(first,)).run(wall_s=40.0)
    assert result.reason is StopReason.WALL
    assert result.final.candidate_id == second


def sent_away():
    """A run of two drafts, the first of which awaits its fast verdict."""
    bench = ModelBench(block_of_64, calls=1, plan={"drafts": 2})
    bench.verifier = carried(store=bench.store)
    bench.generator._clock = bench.verifier.clock
    assert bench.run().reason is StopReason.WAITING
    return bench, wanted(bench, "fast")[0]


@pytest.mark.parametrize("more", [{}, {"tier": "fast"}])
def test_a_candidate_that_was_refused_twice_ends_and_the_search_goes_on(more):
    bench, first = sent_away()
    refuse(bench, first, **more)
    refuse(bench, first, **more)
    again = going_on(bench, Tier.FAST, Tier.FINAL, refused=(first,))
    result = again.run()
    assert result.reason is StopReason.EXHAUSTED
    (lost,) = [a for a in result.attempts if a.candidate_id == first]
    assert (lost.verdict.status, lost.verdict.evidence.kind) == (Status.INCONCLUSIVE, "not_judged")
    assert "DeviceLost: no GPU" in lost.verdict.message
    assert lost.objective is None
    assert result.passed
    assert result.final.candidate_id != first


@pytest.mark.parametrize("notes", [[], [{}], [{}, {"tier": "final"}], [{"tier": "fast"}]])
def test_a_candidate_that_was_refused_once_is_awaited(notes):
    bench, first = sent_away()
    for more in notes:
        refuse(bench, first, **more)
    result = going_on(bench, Tier.FAST, refused=(first,)).run()
    assert result.reason is StopReason.WAITING
    (open_one,) = [a for a in result.attempts if a.candidate_id == first]
    assert open_one.verdict is None
    result = going_on(bench, Tier.FAST, Tier.FINAL).run()
    assert result.reason is StopReason.EXHAUSTED
    assert all(a.verdict.passed for a in result.attempts)


def test_a_judge_of_this_machine_is_not_asked_after_the_end_of_the_budget():
    bench, _ = out_of_time()
    bench = going_on(bench, Tier.FAST, Tier.FINAL)
    bench.verifier.costs = Costs(fast_s=20.0, final_s=20.0)
    bench.run(wall_s=40.0)
    assert len(bench.verifier.verified(Tier.FAST)) == 1


def test_without_a_judge_elsewhere_the_end_of_the_budget_is_the_end():
    bench = ModelBench(two_and_then_silence, calls=2, plan={"drafts": 9})
    assert bench.run(wall_s=40.0).reason is StopReason.WALL


def at_the_finals():
    """A run in which three equally fast candidates await their final verdicts."""
    bench = ModelBench(block_of_64, plan={"drafts": 2})
    bench.verifier = carried(Tier.FAST, store=bench.store)
    bench.generator._clock = bench.verifier.clock
    assert bench.run().reason is StopReason.WAITING
    assert len(wanted(bench, "final")) == 3
    return bench, wanted(bench, "final")


def warnings(bench):
    return [note["message"] for note in bench.store.notes("warning")]


@pytest.mark.parametrize("more", [{}, {"tier": "final"}])
def test_a_final_verdict_that_cannot_come_is_not_awaited(more):
    bench, (first, *others) = at_the_finals()
    refuse(bench, first, **more)
    result = going_on(bench, Tier.FAST, Tier.FINAL, refused=(first,)).run()
    assert result.reason is StopReason.EXHAUSTED
    assert result.final.candidate_id in others
    assert [first in message for message in warnings(bench)] == [True]


@pytest.mark.parametrize("note", [None, {"tier": "fast"}])
def test_a_final_verdict_that_may_come_is_awaited(note):
    bench, (first, *_) = at_the_finals()
    if note is not None:
        refuse(bench, first, **note)
    result = going_on(bench, Tier.FAST, Tier.FINAL, refused=(first,)).run()
    assert result.reason is StopReason.WAITING
    assert warnings(bench) == []


def test_without_another_final_the_refused_one_is_awaited():
    bench, finals = at_the_finals()
    for candidate_id in finals:
        refuse(bench, candidate_id)
    assert going_on(bench, Tier.FAST).run().reason is StopReason.WAITING
    result = going_on(bench, Tier.FAST, Tier.FINAL).run()
    assert result.passed
    assert warnings(bench) == []


def test_a_refused_best_lets_the_next_best_be_asked_for():
    def script(proposal):
        warps = 8 if proposal.id == 1 else 2
        point = {"BLOCK": 64, "num_warps": warps, "split": False, "by": proposal.id}
        return FakeCall(point=point)

    bench = ModelBench(script, plan={"drafts": 1})
    bench.verifier = carried(Tier.FAST, store=bench.store)
    bench.generator._clock = bench.verifier.clock
    bench.run()
    (best,) = wanted(bench, "final")
    refuse(bench, best)
    going_on(bench, Tier.FAST).run()
    assert len(wanted(bench, "final")) == 2
    result = going_on(bench, Tier.FAST, Tier.FINAL, refused=(best,)).run()
    assert result.reason is StopReason.EXHAUSTED
    assert result.passed
