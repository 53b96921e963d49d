"""What one GPU did while a bundle was judged on it."""

from dataclasses import replace

import pytest

from hotloop.core.verdict import Stage, Status
from hotloop.testing.fakes import FakeClock, fake_verdict
from hotloop.verify.bundle_diary import COMPILE_WAIT, Diary, use_of


@pytest.fixture
def clock():
    return FakeClock()


def verdict(waited_s=0.0, **fields):
    return replace(fake_verdict(1.0, "c"), stage_s={COMPILE_WAIT: waited_s, "gpu": 1.0}, **fields)


def test_a_load_and_verifications_are_work_and_what_lies_between_is_idleness(clock):
    diary = Diary(clock)
    clock.advance(50.0)  # no group to serve: nothing waits
    with diary.work():
        clock.advance(20.0)
    with diary.service():
        for _ in range(2):
            with diary.work():
                clock.advance(3.0)
            diary.judged(verdict())
            clock.advance(0.5)
    use = use_of([diary])
    assert (use.worked_s, use.idle_s, use.verdicts) == (26.0, 1.0, 2)


def test_the_wait_for_a_compiler_is_idleness_once(clock):
    diary = Diary(clock)
    with diary.service():
        with diary.work():
            clock.advance(10.0)
        diary.judged(verdict(waited_s=4.0))
    assert (use_of([diary]).worked_s, use_of([diary]).idle_s) == (6.0, 4.0)
    assert use_of([diary]).idle_frac == pytest.approx(0.4)


def test_what_ends_in_an_error_was_work_and_no_verdict(clock):
    diary = Diary(clock)

    def lose():
        with diary.service(), diary.work():
            clock.advance(2.0)
            raise ValueError("lost")

    with pytest.raises(ValueError, match="lost"):
        lose()
    assert (use_of([diary]).worked_s, use_of([diary]).idle_s, use_of([diary]).verdicts) == (
        2.0,
        0.0,
        0,
    )


def test_a_refusal_of_the_static_rules_is_no_verdict_of_the_gpu(clock):
    diary = Diary(clock)
    refused = replace(fake_verdict(Status.REJECTED_STATIC, "c"), stage=Stage.STATIC)
    with diary.work():
        pass
    diary.judged(refused)
    assert use_of([diary]).verdicts == 0
    diary.judged(replace(fake_verdict(Status.COMPILE_ERROR, "c"), stage=Stage.COMPILE))
    assert use_of([diary]).verdicts == 1


def test_a_gpu_of_two_judges_works_where_one_does_and_is_idle_where_none_does(clock):
    first, second = Diary(clock), Diary(clock)
    with first.service(), second.service():
        with first.work():
            clock.advance(2.0)
            with second.work():
                clock.advance(3.0)  # both
        second.judged(verdict(waited_s=1.0))  # beside the other's work: the GPU was not idle
        clock.advance(4.0)  # neither
    use = use_of([first, second], wall_s=10.0)
    assert (use.worked_s, use.idle_s, use.wall_s, use.verdicts) == (5.0, 4.0, 10.0, 1)


def test_what_one_judge_serves_while_no_other_works_is_idleness(clock):
    serving, other = Diary(clock), Diary(clock)
    with other.work():
        clock.advance(1.0)
        with serving.service():
            clock.advance(1.0)
    with serving.service():
        clock.advance(2.0)
    assert use_of([other, serving]).idle_s == 2.0
