"""Long calls give a handle, and the judge is kept until nobody calls."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from hotloop.agent.jobs import KEPT, Jobs
from hotloop.core.space import Point
from hotloop.core.verdict import Status, Tier
from hotloop.errors import ConfigError, WorkerDied
from hotloop.testing.fakes import FakeVerifier, fake_candidate, make_problem
from hotloop.warm.judge import WarmJudge


@pytest.fixture
def jobs():
    made = Jobs()
    yield made
    made.close()


def test_a_job_answers_at_once_or_later(jobs):
    may_end = threading.Event()
    slow = jobs.start("slow", lambda: "done" if may_end.wait(10) else "never")
    assert slow.answer(0.02) is None
    may_end.set()
    assert jobs.find(slow.id).answer(10) == "done"
    assert jobs.start("quick", lambda: "now").answer(10) == "now"


def test_jobs_run_one_after_the_other(jobs):
    running = []
    most = []

    def work():
        running.append(1)
        most.append(len(running))
        time.sleep(0.01)
        running.pop()
        return ""

    for job in [jobs.start("work", work) for _ in range(5)]:
        assert job.answer(10) == ""
    assert most == [1] * 5


def test_an_error_is_the_jobs_answer(jobs):
    def fail():
        raise WorkerDied("the judge is gone")

    def late():
        raise TimeoutError("its own")

    with pytest.raises(WorkerDied):
        jobs.start("fails", fail).answer(10)
    with pytest.raises(TimeoutError, match="its own"):
        jobs.start("late", late).answer(10)


def test_old_answers_are_dropped_and_unknown_handles_named(jobs):
    first = jobs.start("first", lambda: "1")
    first.answer(10)
    for _ in range(KEPT + 1):
        jobs.start("more", lambda: "").answer(10)
    with pytest.raises(ConfigError, match="no job"):
        jobs.find(first.id)


@dataclass(slots=True, kw_only=True)
class CountedVerifier(FakeVerifier):
    """A fake that says when it is closed."""

    on_close: Callable[[], None]

    def close(self):
        self.on_close()


class Opened:
    """Opens fakes and counts them."""

    def __init__(self):
        self.judges = []
        self.closed = 0
        self.loads = 0

    def __call__(self):
        judge = CountedVerifier(
            behaviour=lambda pins, tier: 1.0, on_load=self._load, on_close=self._close
        )
        self.judges.append(judge)
        return judge

    def _load(self):
        self.loads += 1

    def _close(self):
        self.closed += 1


def point(value: int) -> Point:
    return {"BLOCK": value}


def test_one_judge_serves_many_calls():
    opened = Opened()
    warm = WarmJudge(opened)
    problem, other = make_problem("fake/a"), make_problem("fake/b", "# other\n")
    assert not warm.is_warm
    for value in (16, 32):
        verdict = warm.verify(problem, fake_candidate(point(value)), Tier.FAST)
        assert verdict.status is Status.PASSED
    assert warm.load(problem).problem_id == problem.id
    assert (len(opened.judges), opened.loads) == (1, 1)
    assert warm.load(other).problem_id == other.id
    assert (len(opened.judges), opened.loads) == (1, 2)
    warm.close()
    warm.close()
    assert (opened.closed, warm.is_warm) == (1, False)


def test_a_judge_that_nobody_calls_ends_and_the_next_call_opens_another():
    opened = Opened()
    warm = WarmJudge(opened, idle_s=0.05)
    problem = make_problem()
    warm.load(problem)
    deadline = time.monotonic() + 5
    while warm.is_warm and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (warm.is_warm, opened.closed) == (False, 1)
    warm.load(problem)
    assert (len(opened.judges), opened.loads) == (2, 2)
    warm.close()


def test_a_judge_that_failed_is_not_trusted_with_the_next_call():
    opened = Opened()
    warm = WarmJudge(opened)
    problem = make_problem()
    warm.load(problem)

    def fall(candidate, tier):
        raise WorkerDied("gone")

    opened.judges[0].on_verify = fall
    with pytest.raises(WorkerDied):
        warm.verify(problem, fake_candidate(point(16)), Tier.FAST)
    assert opened.closed == 1
    assert warm.verify(problem, fake_candidate(point(16)), Tier.FAST).passed
    warm.close()
