"""What one GPU did while a bundle was judged on it."""

from dataclasses import replace

import pytest

from hotloop.core.verdict import Stage, Status
from hotloop.testing.fakes import FakeClock, fake_verdict
from hotloop.verify.bundle_diary import COMPILE_WAIT, Diary


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
    use = diary.use
    assert (use.worked_s, use.idle_s, use.verdicts) == (26.0, 1.0, 2)


def test_the_wait_for_a_compiler_is_idleness_once(clock):
    diary = Diary(clock)
    with diary.service():
        with diary.work():
            clock.advance(10.0)
        diary.judged(verdict(waited_s=4.0))
    assert (diary.use.worked_s, diary.use.idle_s) == (6.0, 4.0)
    assert diary.use.idle_frac == pytest.approx(0.4)


def test_what_ends_in_an_error_was_work_and_no_verdict(clock):
    diary = Diary(clock)

    def lose():
        with diary.service(), diary.work():
            clock.advance(2.0)
            raise ValueError("lost")

    with pytest.raises(ValueError, match="lost"):
        lose()
    assert (diary.use.worked_s, diary.use.idle_s, diary.use.verdicts) == (2.0, 0.0, 0)


def test_a_refusal_of_the_static_rules_is_no_verdict_of_the_gpu(clock):
    diary = Diary(clock)
    refused = replace(fake_verdict(Status.REJECTED_STATIC, "c"), stage=Stage.STATIC)
    diary.judged(refused)
    assert diary.use.verdicts == 0
    diary.judged(replace(fake_verdict(Status.COMPILE_ERROR, "c"), stage=Stage.COMPILE))
    assert diary.use.verdicts == 1
