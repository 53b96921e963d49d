"""Children of the oracle: each piece of work has its answer, whatever the others do."""

import os
import time

import pytest
from benchmarks.mutation.oracle_child import in_child, in_children


def run(work, count, *, limit_s=5.0, left_s=20.0):
    return in_children(count, work, start_s=5.0, limit_s=limit_s, left_s=left_s)


def test_one_child_answers_for_all_and_another_goes_on_after_a_crash():
    def work(number, send):
        if number == 2:
            os._exit(3)
        send({"outcome": "shown", "pid": os.getpid()})
        return True

    answers = run(work, 5)
    assert [a["outcome"] for a in answers] == ["shown", "shown", "crashes", "shown", "shown"]
    pids = [a.get("pid") for a in answers]
    assert pids[0] == pids[1] != pids[3] == pids[4]


def test_a_child_that_is_not_fit_any_more_is_replaced():
    def work(number, send):
        send({"outcome": "raises", "pid": os.getpid()})
        return False

    assert len({a["pid"] for a in run(work, 3)}) == 3


def test_work_that_hangs_is_ended_and_the_rest_is_done():
    def work(number, send):
        if number == 1:
            time.sleep(60)
        send({"outcome": "shown"})
        return True

    answers = in_children(3, work, start_s=0.0, limit_s=0.3, left_s=20.0)
    assert [a["outcome"] for a in answers] == ["shown", "hangs", "shown"]


def test_work_that_is_not_done_in_time_has_no_answer():
    def work(number, send):
        time.sleep(0.2)
        send({"outcome": "shown"})
        return True

    answers = run(work, 50, left_s=0.7)
    assert 0 < len(answers) < 50
    assert {a["outcome"] for a in answers} == {"shown"}


def test_an_exception_of_ours_is_told_and_silence_is_a_crash():
    def broken(number, send):
        raise KeyError("lost")

    told = run(broken, 1)[0]
    assert told["outcome"] == "fault"
    assert "lost" in told["message"]
    assert run(lambda number, send: False, 1) == [{"outcome": "crashes"}]


@pytest.mark.slow
def test_processor_time_is_limited():
    def spin(send):
        while True:
            pass

    assert in_child(spin, 1.0) == {"outcome": "hangs"}
