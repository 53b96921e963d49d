"""A run that asks for the full final tier is not content with a short verdict; one that asks for
less is content with both."""

from dataclasses import replace

import pytest

from hotloop.core.attempt import SHORT_FINAL, Budget
from hotloop.core.verdict import Status, Tier
from hotloop.engine import StopReason, run_search
from hotloop.errors import WorkerDied
from hotloop.testing.fakes import FakeVerifier, make_problem, make_spec, small_latency_ms

BEST = {"BLOCK": 64, "num_warps": 8, "split": False}
SECOND = {"BLOCK": 64, "num_warps": 8, "split": True, "parts": 2}
COUNT = 8


class ShortOrFull(FakeVerifier):
    """Judges at the short final tier, or at the full one."""

    short = True

    def verify(self, candidate, tier):
        verdict = FakeVerifier.verify(self, candidate, tier)
        return replace(verdict, short=self.short and tier is Tier.FINAL)


class Sessions:
    """Runs the sessions of one run, with the short or the full final tier."""

    def __init__(self, bench):
        self.bench = bench
        self.behaviour = small_latency_ms

    def run(self, *, short, **budget):
        """Return the result, and the candidates that were verified at the final tier."""
        verifier = ShortOrFull(behaviour=self.behaviour)
        problem = make_problem()
        spec = make_spec(problem, budget=Budget(**{"max_candidates": COUNT, **budget}))
        if short is not None:
            spec = replace(spec, options={SHORT_FINAL: short})
        verifier.short = spec.has_short_final
        parts = replace(self.bench.parts(), verifier=verifier)
        result = run_search(problem, parts, spec=spec, clock=verifier.clock)
        return result, verifier.verified(Tier.FINAL)


def dies_at(*points):
    """The judge ends whenever it is to verify one of these at the final tier."""

    def behaviour(point, tier):
        if tier is Tier.FINAL and (not points or point in points):
            raise WorkerDied("the judge ended with signal 9")
        return small_latency_ms(point, tier)

    return behaviour


@pytest.fixture
def sessions(bench):
    return Sessions(bench)


def test_a_short_verdict_is_judged_again_in_full(sessions):
    first, judged = sessions.run(short=True)
    assert first.final.short
    assert judged == [first.final.candidate_id]
    second, again = sessions.run(short=False)
    assert again == judged
    assert (second.reason, second.final.short) == (StopReason.CANDIDATES, False)
    assert len(second.attempts) == COUNT, "the search itself was over"
    third, none = sessions.run(short=False)
    assert (third.final, none) == (second.final, [])


def test_a_full_verdict_is_enough_for_both(sessions):
    first, judged = sessions.run(short=False)
    assert not first.final.short
    for short in (True, False):
        again, none = sessions.run(short=short)
        assert (again.final, none) == (first.final, [])
    assert len(judged) == 1


def test_a_short_verdict_is_enough_for_who_asks_for_no_more(sessions):
    first, _ = sessions.run(short=True)
    again, none = sessions.run(short=True)
    assert (again.final, none) == (first.final, [])


def test_a_refusal_by_the_short_tier_stands(sessions):
    sessions.behaviour = lambda point, tier: (
        Status.INCORRECT_NUMERICAL if tier is Tier.FINAL else small_latency_ms(point, tier)
    )
    first, refused = sessions.run(short=True)
    assert len(refused) == 3
    again, none = sessions.run(short=False)
    assert (again.final, none) == (first.final, [])


def test_what_only_the_full_tier_refuses_falls_to_the_next_best(sessions):
    first, _ = sessions.run(short=True)
    best = first.final.candidate_id
    point = {a.candidate_id: a.point for a in first.attempts}[best]
    sessions.behaviour = lambda p, tier: (
        Status.RUNTIME_ERROR if tier is Tier.FINAL and p == point else small_latency_ms(p, tier)
    )
    second, judged = sessions.run(short=False)
    assert judged[0] == best
    assert second.passed
    assert second.final.candidate_id == judged[1] != best


def test_a_longer_budget_asks_for_the_full_tier_by_itself(sessions):
    first, _ = sessions.run(short=None, wall_s=100.0)
    assert first.final.short
    second, judged = sessions.run(short=None, wall_s=1000.0)
    assert judged == [first.final.candidate_id]
    assert not second.final.short


def test_a_short_verdict_that_nobody_has_told_of_is_not_enough_either(sessions):
    first, _ = sessions.run(short=True)
    store = sessions.bench.store
    # The run was killed between the verdict and its note.
    store._notes = [(kind, note) for kind, note in store._notes if kind not in ("final", "stopped")]
    second, judged = sessions.run(short=False)
    assert judged == [first.final.candidate_id]
    assert not second.final.short


def test_nothing_short_is_reported_in_a_full_run(sessions):
    """The best by its final time was second in the loop, and too far behind to be worth it."""
    order = {str(BEST): (1.00, 1.30), str(SECOND): (1.04, 1.00)}

    def behaviour(point, tier):
        return order.get(str(dict(point)), (3.0, 3.0))[tier is Tier.FINAL]

    sessions.behaviour = behaviour
    first, judged = sessions.run(short=True, max_candidates=None)
    assert len(judged) == 2
    assert first.final.performance.latency_ms == 1.00
    parts = sessions.bench.parts
    sessions.bench.parts = lambda: replace(parts(), closes=True)
    second, again = sessions.run(short=False, max_candidates=None)
    assert sorted(again) == sorted(judged)
    assert (second.final.short, second.final.performance.latency_ms) == (False, 1.00)


def test_a_machine_fault_takes_no_verdict_away_and_is_asked_about_again(sessions):
    first, _ = sessions.run(short=True)
    best = first.final.candidate_id
    sessions.behaviour = dies_at({a.candidate_id: a.point for a in first.attempts}[best])
    second, judged = sessions.run(short=False)
    assert judged.count(best) == 3
    assert second.passed
    final = {n["candidate_id"]: n["verdict"] for n in sessions.bench.store.notes("final")}[best]
    assert (final["status"], final["short"]) == ("PASSED", True)
    told = [note["message"] for note in sessions.bench.store.notes("warning")]
    assert any(f"{best} keeps the short final verdict" in message for message in told)
    sessions.behaviour = small_latency_ms
    third, again = sessions.run(short=False)
    assert again == [best]
    assert (third.final.candidate_id, third.final.short) == (best, False)
    fourth, none = sessions.run(short=False)
    assert (fourth.final, none) == (third.final, [])


def test_what_was_never_judged_is_no_answer_either(sessions):
    sessions.behaviour = dies_at()
    with pytest.raises(WorkerDied):  # the second one fails as well: it is the machine
        sessions.run(short=True)
    store = sessions.bench.store
    (apart,) = store.notes("final")
    assert apart["verdict"]["evidence"]["kind"] == "not_judged"
    sessions.behaviour = small_latency_ms
    result, judged = sessions.run(short=True)
    assert judged == [apart["candidate_id"]]
    assert result.passed


def test_a_refusal_takes_a_short_verdict_away(sessions):
    first, _ = sessions.run(short=True)
    best = first.final.candidate_id
    sessions.behaviour = lambda point, tier: (
        Status.RUNTIME_ERROR if tier is Tier.FINAL else small_latency_ms(point, tier)
    )
    second, _ = sessions.run(short=False)
    assert not second.passed
    finals = {n["candidate_id"]: n["verdict"] for n in sessions.bench.store.notes("final")}
    assert finals[best]["status"] == "RUNTIME_ERROR"
