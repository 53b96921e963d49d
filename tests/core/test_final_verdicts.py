from dataclasses import replace

import pytest

from hotloop.core.attempt import Attempt
from hotloop.core.finals import refusals, with_refusals
from hotloop.core.record import to_json
from hotloop.core.verdict import Status, Tier
from hotloop.testing.fakes import fake_verdict


def note(candidate_id, outcome):
    verdict = fake_verdict(outcome, candidate_id, tier=Tier.FINAL)
    return {"attempt_id": 1, "candidate_id": candidate_id, "verdict": to_json(verdict)}


def attempt(number, candidate_id, outcome=0.5, *, judged=None):
    verdict = None if outcome is None else fake_verdict(outcome, judged or candidate_id)
    return Attempt(
        id=number, action="draft", point={}, parents=(), generator="model",
        candidate_id=candidate_id, verdict=verdict, started_s=0.0, finished_s=1.0,
        objective=outcome if isinstance(outcome, float) else None,
    )  # fmt: skip


def test_a_refused_kernel_has_failed_and_others_have_not():
    refused = refusals([note("a", Status.INCORRECT_NUMERICAL), note("b", 0.4)])
    assert list(refused) == ["a"]
    wrong, right = with_refusals([attempt(1, "a"), attempt(2, "b")], refused)
    assert (wrong.verdict.status, wrong.objective) == (Status.INCORRECT_NUMERICAL, None)
    assert right == attempt(2, "b")


@pytest.mark.parametrize("status", [Status.INCONCLUSIVE, Status.COMPILED_ONLY])
def test_what_the_final_tier_could_not_decide_is_no_refusal(status):
    assert refusals([note("a", status)]) == {}


def test_the_last_word_on_a_kernel_counts():
    wrong, right = note("a", Status.REWARD_HACK), note("a", 0.5)
    assert list(refusals([right, wrong])) == ["a"]
    assert refusals([wrong, right]) == {}


def test_the_same_program_is_refused_with_it():
    refused = refusals([note("a", Status.TIMEOUT)])
    (same,) = with_refusals([attempt(3, "c", judged="a")], refused)
    assert (same.verdict.status, same.candidate_id) == (Status.TIMEOUT, "c")


@pytest.mark.parametrize("outcome", [None, Status.COMPILE_ERROR])
def test_what_is_open_or_failed_before_is_left_as_it_is(outcome):
    before = attempt(1, "a", outcome)
    assert with_refusals([before], refusals([note("a", Status.TIMEOUT)])) == (before,)
    assert with_refusals([replace(before, candidate_id=None, verdict=None)], {})[0].verdict is None
