"""Runs that share a GPU: what their budgets count, and how they stop while they wait."""

import threading
import time

import pytest

from hotloop.core.attempt import Budget
from hotloop.core.verdict import Tier
from hotloop.engine import Parts, StopFlag, StopReason, run_search
from hotloop.search.random_search import RandomStrategy
from hotloop.store.memory import MemoryStore
from hotloop.testing.fakes import (
    FakeClock,
    FakeGenerator,
    RecordingListener,
    StoppableVerifier,
    make_problem,
    make_spec,
)
from hotloop.verify.turn_verifier import TurnVerifier
from hotloop.verify.turns import Turns

SOON_S = 10.0
LONG_S = 1000.0


def until(condition):
    end = time.monotonic() + SOON_S
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.002)


class Run:
    """A search whose judge takes turns on a GPU, in a thread."""

    def __init__(self, turns, *, heartbeat_s=10.0, clock=None, **budget):
        self.turns, self.stop, self.store = turns, StopFlag(), MemoryStore()
        self.judge = StoppableVerifier(clock=clock or FakeClock())
        self.verifier = TurnVerifier(
            self.judge, turns, self.stop, refuse=lambda candidate, problem, tier: None
        )
        self.budget, self.heartbeat_s, self.result = budget, heartbeat_s, None
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        problem = make_problem()
        parts = Parts(
            generator=FakeGenerator(), strategy=RandomStrategy, verifier=self.verifier,
            store=self.store, heartbeat_s=self.heartbeat_s,
        )  # fmt: skip
        self.result = run_search(
            problem,
            parts,
            spec=make_spec(problem, budget=Budget(**self.budget)),
            listen=RecordingListener(),
            clock=self.judge.clock,
            stop=self.stop,
        )
        self.verifier.close()

    def start(self):
        self.thread.start()
        return self

    def waits(self):
        return any(ticket.guest is self.verifier._guest for ticket in list(self.turns._queue))

    def joined(self):
        self.thread.join(SOON_S)
        assert not self.thread.is_alive()
        return self.result


class RealAndFake(FakeClock):
    """Real time passes, and what a fake adds."""

    def __call__(self):
        return super().__call__() + time.monotonic()


@pytest.fixture
def turns():
    return Turns()


@pytest.fixture
def neighbour(turns):
    """A GPU that is taken before the second verification, and by whom."""
    return turns.enter(lambda: None)


def taken_before(run, number, turns, neighbour):
    """Let the neighbour have its turn before a run's nth build, counted from 1; its ticket."""
    builds, tickets = [], []

    def on_build(candidate):
        builds.append(candidate.id)
        if len(builds) == number:
            tickets.append(turns.wait(neighbour, None, lambda: False))

    run.judge.on_build = on_build
    return tickets


def test_the_wait_for_another_runs_turn_costs_no_budget(turns, neighbour):
    run = Run(turns, max_candidates=4)
    tickets = taken_before(run, 2, turns, neighbour)
    run.start()
    until(lambda: tickets and run.waits())
    run.judge.clock.advance(LONG_S)
    turns.end(tickets[0])
    result = run.joined()
    assert result.reason is StopReason.CANDIDATES
    assert len(result.attempts) == 4
    assert result.spent_s < LONG_S / 2, "four fast verifications and a final one"
    assert result.spent_s >= 4 * run.judge.costs.fast_s


def test_the_same_time_counts_where_the_run_works_itself(turns):
    run = Run(turns, max_candidates=1)
    run.judge.on_verify = lambda candidate, tier: run.judge.clock.advance(LONG_S)
    assert run.start().joined().spent_s >= LONG_S


def test_a_wait_before_the_load_is_no_set_up_time(turns, neighbour):
    ticket = turns.wait(neighbour, None, lambda: False)
    run = Run(turns, clock=RealAndFake(), max_candidates=1).start()
    until(run.waits)
    time.sleep(0.1)
    turns.end(ticket)
    assert run.joined().setup_s < 0.1 + run.judge.costs.load_s


def taken_after_first(run, turns, neighbour):
    """Let the neighbour ask for its turn while a run's first verification works; its ticket."""
    taken = []

    def ask():
        taken.append(turns.wait(neighbour, None, lambda: False))

    def on_verify(candidate, tier):
        if len(run.judge.verified(Tier.FAST)) == 1 and tier is Tier.FAST:
            threading.Thread(target=ask, daemon=True).start()
            until(lambda: any(t.guest is neighbour for t in list(turns._queue)))

    run.judge.on_verify = on_verify
    return taken


def test_a_first_request_ends_a_wait_and_leaves_the_attempt_open(turns, neighbour):
    run = Run(turns, max_candidates=9)
    taken = taken_after_first(run, turns, neighbour)
    run.start()
    until(lambda: taken and run.waits())
    run.stop.request()
    time.sleep(0.15)
    assert run.waits(), "the final tier of what is there waits for its turn"
    turns.end(taken[0])
    result = run.joined()
    assert result.reason is StopReason.INTERRUPTED
    assert len(run.judge.verified(Tier.FAST)) == 1
    assert len(run.judge.verified(Tier.FINAL)) == 1
    assert run.store.leases.failures(open_candidate(result), Tier.FAST) == ()


def open_candidate(result):
    return next(a.candidate_id for a in result.attempts if a.verdict is None)


@pytest.mark.parametrize("requests", [1, 2])
def test_a_request_ends_the_wait_for_the_load(turns, neighbour, requests):
    turns.wait(neighbour, None, lambda: False)
    run = Run(turns, max_candidates=9).start()
    until(run.waits)
    for _ in range(requests):
        run.stop.request()
    assert run.joined().reason is StopReason.INTERRUPTED
    assert run.judge.calls == []


def test_a_second_request_ends_the_wait_for_the_final_tier_as_well(turns, neighbour):
    run = Run(turns, max_candidates=1)
    taken = taken_after_first(run, turns, neighbour)
    run.start()
    until(lambda: taken and run.waits())
    run.stop.request()
    time.sleep(0.15)
    assert run.waits(), "a drain lets the final tier have its turn"
    run.stop.request()
    assert run.joined().reason is StopReason.INTERRUPTED
    assert run.judge.verified(Tier.FINAL) == []


def test_a_judge_that_hangs_is_given_up_and_the_other_run_ends_meanwhile(turns):
    hanging, other = Run(turns, heartbeat_s=0.02, max_candidates=2), Run(turns, max_candidates=2)
    is_hanging = threading.Event()

    def hang(candidate, tier):
        if not is_hanging.is_set():
            hanging.judge.gone_on.clear()
            is_hanging.set()

    hanging.judge.on_verify = hang
    hanging.start()
    assert is_hanging.wait(SOON_S)
    other.start()
    assert other.joined().passed
    assert hanging.joined().passed
    assert hanging.judge.abandoned == 1
    assert other.judge.abandoned == 0


def test_a_long_wait_is_no_silence(turns, neighbour):
    run = Run(turns, heartbeat_s=0.005, max_candidates=3)
    tickets = taken_before(run, 2, turns, neighbour)
    run.start()
    until(lambda: tickets and run.waits())
    run.judge.gone_on.clear()  # it would not answer
    time.sleep(0.15)
    run.judge.gone_on.set()
    turns.end(tickets[0])
    assert run.joined().passed
    assert run.judge.abandoned == 0


def test_two_runs_share_a_gpu_fairly_and_never_work_at_once(turns):
    runs = [Run(turns, max_candidates=6) for _ in range(3)]
    order, busy = [], []

    def on_verify(number):
        def note(candidate, tier):
            busy.append(number)
            assert len(busy) == 1
            time.sleep(0.002)
            order.append(number)
            busy.pop()

        return note

    for number, run in enumerate(runs):
        run.judge.on_verify = on_verify(number)
        run.start()
    assert all(run.joined().passed for run in runs)
    assert sorted(order) == sorted([0, 1, 2] * 7), "six fast verifications and a final one each"
    assert turns.use().verdicts == 21
