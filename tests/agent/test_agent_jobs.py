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
from hotloop.warm import watch
from hotloop.warm.judge import WarmJudge
from hotloop.warm.watch import JudgeSilent


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


def test_a_job_that_waits_is_cancelled_without_stopping_the_one_before_it():
    stops = []
    jobs = Jobs(lambda: stops.append(1))
    may_end = threading.Event()
    first = jobs.start("first", lambda: "done" if may_end.wait(10) else "never")
    second = jobs.start("second", lambda: "must not run")
    assert jobs.cancel(second)
    with pytest.raises(ConfigError, match=r"job-2 \(second\) was cancelled; start the work again"):
        second.answer(10)
    may_end.set()
    assert first.answer(10) == "done"
    assert not jobs.cancel(first), "it was done"
    assert first.answer(0) == "done"
    assert stops == []
    jobs.close()


def test_a_job_under_way_is_stopped_and_the_next_one_runs():
    opened = Opened()
    warm = WarmJudge(opened)
    begun, stopped = threading.Event(), threading.Event()

    def stop():
        stopped.set()

    def hang():
        begun.set()
        assert stopped.wait(10)
        raise WorkerDied("the judge's process ended")

    jobs = Jobs(stop)
    job = jobs.start("long", hang)
    assert begun.wait(10)
    assert jobs.cancel(job)
    for _ in range(2):
        with pytest.raises(ConfigError, match="was cancelled"):
            job.answer(10)
    problem = make_problem()
    candidate = fake_candidate(point(16))
    after = jobs.start("after", lambda: warm.verify(problem, candidate, Tier.FAST).status.value)
    assert after.answer(10) == "PASSED"
    jobs.close()
    warm.close()


def test_a_judge_is_ended_under_who_uses_it_and_another_follows():
    judges = []

    def open_judge():
        judges.append(Endless() if not judges else FakeVerifier(behaviour=lambda p, t: 1.0))
        return judges[-1]

    warm = WarmJudge(open_judge)
    warm.abandon()  # nobody is there
    jobs = Jobs(warm.abandon)
    problem, candidate = make_problem(), fake_candidate(point(16))

    def judge():
        return warm.verify(problem, candidate, Tier.FAST).status.value

    job = jobs.start("verify", judge)
    while not (judges and judges[0].begun.wait(0.01)):
        pass
    assert jobs.cancel(job)
    with pytest.raises(ConfigError, match="was cancelled"):
        job.answer(10)
    assert jobs.start("verify", judge).answer(10) == "PASSED"
    jobs.close()
    warm.close()


def test_a_judge_that_falls_silent_is_told_and_the_next_call_has_another(monkeypatch):
    monkeypatch.setattr(watch, "ASK_S", 0.02)
    judges = []

    def open_judge():
        judges.append(Endless() if not judges else FakeVerifier(behaviour=lambda p, t: 1.0))
        judges[0].answers = False
        return judges[-1]

    warm = WarmJudge(open_judge)
    problem, candidate = make_problem(), fake_candidate(point(16))
    with pytest.raises(JudgeSilent, match="answered nothing for 15 s and was ended"):
        warm.verify(problem, candidate, Tier.FAST)
    assert warm.verify(problem, candidate, Tier.FAST).passed
    warm.close()


class Endless(FakeVerifier):
    """A fake whose verification ends when its judge is ended, and no sooner."""

    def __init__(self):
        super().__init__()
        self.answers = True
        self.begun, self.ended = threading.Event(), threading.Event()

    def verify(self, candidate, tier):
        self.begun.set()
        assert self.ended.wait(10)
        raise WorkerDied("the judge's process ended")

    def is_alive(self, within_s):
        return self.answers

    def abandon(self):
        self.ended.set()


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
