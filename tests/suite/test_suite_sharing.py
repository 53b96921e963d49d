"""Who gets the time that others left over: expected gains, and sums that stay in the budget."""

from dataclasses import replace

import pytest

from hotloop.core.attempt import Attempt
from hotloop.engine import RunResult, StopReason
from hotloop.suite.folder import Member
from hotloop.suite.sharing import (
    SLICE_FRAC,
    TREND_ATTEMPTS,
    Claim,
    claim_of,
    free_s,
    had_their_share,
    next_grant,
    trend,
)
from hotloop.suite.standing import Standing, State
from hotloop.testing.fakes import Tier, fake_verdict

SHARE_S = 100.0


def claim(name, spent_s, gain=0.0, *, limit_s=SHARE_S, is_over=True):
    return Claim(name=name, spent_s=spent_s, limit_s=limit_s, is_over=is_over, gain=gain)


def attempts(*objectives):
    """One judged attempt for each: its time, or None where it failed."""
    return tuple(
        Attempt(
            id=i, action="draft", point={}, parents=(), generator="g", candidate_id=f"{i}",
            verdict=fake_verdict(1.0, f"{i}"), objective=objective, started_s=i, finished_s=i + 1.0,
        )
        for i, objective in enumerate(objectives)
    )  # fmt: skip


def standing(
    *, state=State.DONE, reason=StopReason.WALL, passed=True, share=0.5, objectives=(4.0, 1.0)
):
    final = None
    if passed:
        final = fake_verdict(1.0, "c", tier=Tier.FINAL)
        final = replace(final, performance=replace(final.performance, roofline_frac=share))
    result = RunResult(
        best_attempt_id=1 if passed else None, fast=fake_verdict(1.0, "c") if passed else None,
        final=final, attempts=attempts(*objectives), spent_s=SHARE_S, setup_s=1.0, reason=reason,
    )  # fmt: skip
    member = Member(name="kernelbench/1/1", level=1, number=1, title="X", problem_id="0" * 16)
    return Standing(member=member, state=state, result=result)


def gain(slices=0, **given):
    return claim_of(standing(**given), share_s=SHARE_S, granted_s=0.0, slices=slices).gain


def test_what_has_no_kernel_comes_first_and_less_so_with_each_slice():
    unsolved = [gain(passed=False, objectives=(None, None), slices=n) for n in range(4)]
    assert unsolved == sorted(unsolved, reverse=True)
    assert unsolved[0] > unsolved[1] >= gain(share=0.0, objectives=(4.0, 0.0001))
    assert unsolved[3] < gain(share=0.0, objectives=(4.0, 0.0001))


def test_head_room_and_trend_decide_between_kernels():
    steady = (1.0,) * (TREND_ATTEMPTS + 1)
    moving = (*steady[1:], 0.5)
    assert gain(share=0.2, objectives=moving) > gain(share=0.8, objectives=moving)
    assert gain(share=0.5, objectives=moving) > gain(share=0.5, objectives=steady) > 0
    assert gain(share=None, objectives=moving) == gain(share=0.5, objectives=moving)


@pytest.mark.parametrize(
    "given",
    [
        {"share": 0.97},
        {"reason": StopReason.EXHAUSTED},
        {"reason": StopReason.CALLS},
        {"reason": StopReason.USD, "passed": False},
        {"state": State.FAILED},
        {"state": State.SKIPPED},
    ],
)
def test_more_time_is_not_for_those_whom_it_cannot_help(given):
    assert gain(**given) == 0.0
    assert gain() > 0


def test_trend_is_the_improvement_of_the_last_attempts():
    earlier = (8.0,) * TREND_ATTEMPTS
    assert trend(attempts(*earlier, *[None] * (TREND_ATTEMPTS - 1), 2.0)) == pytest.approx(0.75)
    assert trend(attempts(2.0, *[9.0] * TREND_ATTEMPTS)) == 0.0
    assert trend(attempts(None, 3.0)) == 1.0
    assert trend(attempts(None, None)) == 0.0


def test_a_slice_goes_to_the_best_claim_and_is_never_more_than_is_left():
    claims = [claim("early", 20.0), claim("b", SHARE_S, 0.1), claim("a", SHARE_S, 0.3)]
    grant = next_grant(claims, SHARE_S)
    assert (grant.name, grant.limit_s) == ("a", SHARE_S * (1 + SLICE_FRAC))
    poor = [claim("early", 70.0), *claims[1:]]
    assert next_grant(poor, SHARE_S).limit_s == SHARE_S + 30.0
    assert next_grant([claim("early", 95.0), *claims[1:]], SHARE_S) is None
    assert next_grant(claims[:1], SHARE_S) is None, "nobody wants it"


def test_what_somebody_may_still_spend_is_not_given_away():
    waiting = claim("failed", 0.0, is_over=False)
    assert next_grant([waiting, claim("a", SHARE_S, 1.0)], SHARE_S) is None
    assert next_grant([replace(waiting, is_over=True), claim("a", SHARE_S, 1.0)], SHARE_S)


def test_grants_end_with_the_budget_and_never_exceed_it():
    claims = {c.name: c for c in [claim("x", 10.0), claim("y", 0.0), *(
        claim(n, SHARE_S, g) for n, g in (("a", 1.0), ("b", 0.5), ("c", 0.2))
    )]}  # fmt: skip
    granted = []
    while (grant := next_grant(list(claims.values()), SHARE_S)) is not None:
        granted.append(grant.name)
        old = claims[grant.name]
        claims[grant.name] = replace(old, limit_s=grant.limit_s, is_over=False)
        assert free_s(list(claims.values()), SHARE_S) >= 0
        # It spends all of it but a little, and helps half as much from then on.
        claims[grant.name] = replace(old, limit_s=grant.limit_s, spent_s=grant.limit_s - 2,
                                     gain=old.gain / 2)  # fmt: skip
        assert len(granted) < 50
    assert granted[:2] == ["a", "a"]
    assert sum(c.spent_s for c in claims.values()) <= SHARE_S * len(claims)
    assert free_s(list(claims.values()), SHARE_S) < 2 * 0.1 * SHARE_S


def test_an_overspent_run_leaves_less_for_the_others():
    claims = [claim("x", 40.0), claim("over", 150.0), claim("a", SHARE_S, 1.0)]
    assert next_grant(claims, SHARE_S).limit_s == SHARE_S + 10.0


@pytest.mark.parametrize(
    ("state", "all_had"),
    [(State.DONE, True), (State.SKIPPED, True), (State.FAILED, True), (State.OPEN, False),
     (State.REPLY, False), (State.VERDICT, False)],
)  # fmt: skip
def test_shares_come_before_grants(state, all_had):
    assert had_their_share([standing(), standing(state=state)]) is all_had
