"""When the final verdict of a starting kernel is asked for, and in which form."""

from dataclasses import replace

import pytest
from benchmarks.attention_starts import OWN_WISH, as_asked, ask_for_start, start_id, start_verdict
from pilot_makers import Journal, failed, info, passed, problem
from test_attention_models import KERNEL

from hotloop.core.attempt import Attempt
from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.record import to_json
from hotloop.core.verdict import Tier
from hotloop.errors import Pending
from hotloop.testing.fakes import make_spec
from hotloop.verify.bundle import JudgeError, Verdicts
from hotloop.verify.outside import OutsideVerifier, pending_items, take_in

PROBLEM = problem()


def candidate(number):
    text = f"N = {number}\n{KERNEL}"
    return Candidate(language="triton", sources=(SourceFile(path="kernel.py", text=text),))


START, BEST = candidate(0), candidate(1)


def journal(start_verdict=None):
    """Return a journal with a start of that verdict and a faster kernel after it."""
    store = Journal(PROBLEM)
    store.begin(make_spec(PROBLEM), PROBLEM)
    store.note("outside_info", {"problem_id": PROBLEM.id, "info": to_json(info(PROBLEM))})
    told = [(START, start_verdict or passed(START.id, 0.6)), (BEST, passed(BEST.id, 0.5))]
    for number, (one, verdict) in enumerate(told, 1):
        attempt = Attempt(
            id=number, action="start" if one is START else "optimise", point={}, parents=(),
            generator="model", candidate_id=one.id, verdict=None, objective=None, started_s=0.0,
            finished_s=None,
        )  # fmt: skip
        store.propose(attempt, one)
        store.conclude(replace(attempt, verdict=verdict, objective=0.7 - 0.1 * number))
    return store


def run_asks(store, *kernels):
    """Ask for final verdicts as a run does."""
    for one in kernels:
        with pytest.raises(Pending):
            OutsideVerifier(store, PROBLEM).verify(one, Tier.FINAL)


def asked(store):
    items = as_asked(pending_items(store), store)
    return {item.candidate.id: item.short for item in items if item.tier is Tier.FINAL}


def final(one, ms):
    return replace(passed(one.id, ms, Tier.FINAL), problem_id=PROBLEM.id)


def test_the_start_is_asked_for_beside_the_best_and_not_before():
    store = journal()
    assert not ask_for_start(store, PROBLEM)
    assert asked(store) == {}
    run_asks(store, BEST)
    assert ask_for_start(store, PROBLEM)
    assert ask_for_start(store, PROBLEM)
    assert asked(store) == {BEST.id: False, START.id: True}
    assert len(store.notes(OWN_WISH)) == 1


def test_a_start_that_the_run_asks_for_itself_gets_the_full_final_alone():
    store = journal()
    run_asks(store, BEST, START)
    assert ask_for_start(store, PROBLEM)
    assert asked(store) == {BEST.id: False, START.id: False}


def test_a_start_that_the_run_comes_to_want_as_its_result_gets_the_full_final_too():
    store = journal()
    run_asks(store, BEST)
    ask_for_start(store, PROBLEM)
    short = replace(final(START, 0.6), short=True)
    take_in(store, PROBLEM, Verdicts(verdicts=(short, final(BEST, 0.5))))
    assert asked(store) == {}
    with pytest.raises(Pending):  # its best was refused at the final tier
        OutsideVerifier(store, PROBLEM, wants_full=True).verify(START, Tier.FINAL)
    assert asked(store) == {START.id: False}


def test_a_start_that_is_wrong_or_missing_is_not_asked_for():
    store = journal(failed(START.id))
    run_asks(store, BEST)
    assert (start_id(store), ask_for_start(store, PROBLEM)) == (None, False)
    assert asked(store) == {BEST.id: False}


def test_the_answer_is_found_and_is_no_final_verdict_of_the_run():
    store = journal()
    run_asks(store, BEST)
    ask_for_start(store, PROBLEM)
    assert start_verdict(store) is None
    take_in(store, PROBLEM, Verdicts(verdicts=(final(BEST, 0.5), final(START, 0.6))))
    assert not ask_for_start(store, PROBLEM)
    assert start_verdict(store)["candidate_id"] == START.id
    assert store.notes("final") == []
    assert asked(store) == {}


def test_a_final_verdict_of_the_run_itself_counts_before_one_that_was_asked_for_here():
    store = journal()
    run_asks(store, START)
    store.note("final", {"candidate_id": START.id, "verdict": to_json(final(START, 0.4))})
    take_in(store, PROBLEM, Verdicts(verdicts=(final(START, 0.6),)))
    assert start_verdict(store)["performance"]["latency_ms"] == 0.4


def test_what_no_machine_could_judge_is_asked_for_twice():
    store = journal()
    run_asks(store, BEST)
    ask_for_start(store, PROBLEM)
    for number in (1, 2):
        assert ask_for_start(store, PROBLEM)
        assert START.id in asked(store)
        lost = JudgeError(
            problem_id=PROBLEM.id, candidate_id=START.id, tier=Tier.FINAL, asked=number,
            error="InfraError", message=f"lost {number}",
        )  # fmt: skip
        take_in(store, PROBLEM, Verdicts(errors=(lost,)))
    assert not ask_for_start(store, PROBLEM)
    assert asked(store) == {BEST.id: False}
