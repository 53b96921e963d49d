"""A judge that takes turns: what needs one, memory that runs out, and judges that hang."""

import threading
from dataclasses import dataclass, replace

import pytest

from hotloop.core.verdict import Evidence, Status, Tier
from hotloop.errors import InfraError, ProblemError, TurnGivenUp, WorkerDied
from hotloop.testing.fakes import (
    StoppableVerifier,
    fake_candidate,
    fake_verdict,
    make_problem,
)
from hotloop.verify.turn_verifier import TurnVerifier
from hotloop.verify.turns import Turns

SOON_S = 10.0
PROBLEM = make_problem()
KERNEL, BAD = (
    fake_candidate({"BLOCK": 64, "num_warps": 4, "split": False}),
    fake_candidate({"x": 1}),
)


@dataclass
class Stop:
    draining: bool = False
    now: bool = False


class Judge(StoppableVerifier):
    """Notes loads; its judge is gone after `abandon`, and `verify` then loads again itself."""

    def __init__(self, io_bytes=0):
        super().__init__()
        self.io_bytes = io_bytes
        self.loads = 0
        self.on_load = lambda: None

    def load(self, problem):
        self.loads += 1
        return replace(super().load(problem), io_bytes=self.io_bytes)


def refuse(candidate, problem, tier):
    return fake_verdict(Status.REJECTED_STATIC, candidate.id) if candidate == BAD else None


def seated(turns, judge=None, stop=None):
    return TurnVerifier(judge or Judge(), turns, stop or Stop(), refuse=refuse)


def in_thread(work):
    found = {}

    def run():
        try:
            found["result"] = work()
        except TurnGivenUp as exc:
            found["error"] = exc

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, found


@pytest.fixture
def turns():
    return Turns()


@pytest.fixture
def busy(turns):
    """A GPU on which a neighbour works until `busy.set()`."""
    done = threading.Event()
    guest = turns.enter(lambda: None)
    ticket = turns.wait(guest, None, lambda: False)

    def release():
        done.wait(SOON_S)
        turns.end(ticket)

    threading.Thread(target=release, daemon=True).start()
    yield done
    done.set()


def test_a_run_by_itself_loads_builds_and_verifies(turns):
    mine = seated(turns)
    assert mine.load(PROBLEM).problem_id == PROBLEM.id
    mine.build(KERNEL)
    assert mine.verify(KERNEL, Tier.FAST).passed
    assert mine.verify(KERNEL, Tier.FINAL).passed
    assert turns.use().verdicts == 2
    assert not turns.has_turn(mine._guest)


def test_neither_a_build_nor_a_refusal_waits_for_the_neighbour(turns):
    mine = seated(turns)
    mine.load(PROBLEM)
    guest = turns.enter(lambda: None)
    turns.wait(guest, None, lambda: False)
    mine.build(KERNEL)
    assert mine.verify(BAD, Tier.FAST).status is Status.REJECTED_STATIC
    assert turns.has_turn(guest)
    assert turns.use().verdicts == 0


def test_a_kernel_is_compiled_before_its_turn_is_asked_for(turns):
    judge = Judge()
    mine = seated(turns, judge)
    mine.load(PROBLEM)
    judge.on_build = lambda candidate: held.append(turns.has_turn(mine._guest))
    judge.on_verify = lambda candidate, tier: held.append(turns.has_turn(mine._guest))
    held = []
    mine.verify(KERNEL, Tier.FAST)
    assert held == [False, True]


def test_while_it_waits_the_clock_stands_and_nobody_asks_the_judge(turns, busy):
    judge = Judge()
    judge.gone_on.clear()  # would give no sign of life
    mine = seated(turns, judge)
    pauses, is_waiting = [], threading.Event()

    class Paused:
        def __enter__(self):
            pauses.append("in")
            is_waiting.set()

        def __exit__(self, *exc):
            pauses.append("out")

    mine.pause_by(Paused)
    thread, found = in_thread(lambda: mine.load(PROBLEM))
    assert is_waiting.wait(SOON_S)
    assert pauses == ["in"]
    assert mine.is_alive(0.01)
    busy.set()
    thread.join(SOON_S)
    assert found["result"].problem_id == PROBLEM.id
    assert pauses == ["in", "out"]
    assert mine.waited_s > 0


@pytest.mark.parametrize(
    ("stop", "tier", "gives_up"),
    [
        (Stop(draining=True), Tier.FAST, True),
        (Stop(draining=True), Tier.FINAL, False),
        (Stop(draining=True, now=True), Tier.FINAL, True),
        (Stop(), Tier.FAST, False),
    ],
)
def test_a_stop_ends_the_wait_and_a_drain_all_but_the_final_tiers(turns, stop, tier, gives_up):
    asked = Stop()
    mine = seated(turns, stop=asked)
    mine.load(PROBLEM)
    guest = turns.enter(lambda: None)
    ticket = turns.wait(guest, None, lambda: False)
    thread, found = in_thread(lambda: mine.verify(KERNEL, tier))
    asked.draining, asked.now = stop.draining, stop.now
    thread.join(SOON_S if gives_up else 0.15)
    assert thread.is_alive() is not gives_up
    turns.end(ticket)
    thread.join(SOON_S)
    if gives_up:
        assert isinstance(found["error"], TurnGivenUp)
    else:
        assert found["result"].passed


def test_a_judge_that_hangs_in_its_turn_frees_the_gpu_for_others(turns):
    judge = Judge()
    mine, other = seated(turns, judge), seated(turns)
    mine.load(PROBLEM)
    other.load(PROBLEM)
    judge.gone_on.clear()
    hangs = threading.Event()
    judge.on_verify = lambda candidate, tier: hangs.set()
    judge.abandon = lambda: None  # not even that ends it
    thread, _ = in_thread(lambda: mine.verify(KERNEL, Tier.FAST))
    assert hangs.wait(SOON_S)
    assert not mine.is_alive(0.01)
    mine.abandon()
    assert other.verify(KERNEL, Tier.FAST).passed
    judge.gone_on.set()
    thread.join(SOON_S)
    assert turns.use().verdicts == 1, "the late one is not counted"
    assert other.verify(KERNEL, Tier.FAST).passed, "and its end ends nobody else's turn"


def test_closing_a_run_frees_its_place(turns):
    mine = seated(turns)
    mine.load(PROBLEM)
    turns.wait(mine._guest, None, lambda: False)
    mine.close()
    assert seated(turns).load(PROBLEM)


def out_of_memory(times):
    """Return what raises the first times."""
    left = [times]

    def raise_it(*_):
        if left[0]:
            left[0] -= 1
            raise ProblemError("the inputs do not fit: 1.0 of 141.0 GiB are free")

    return raise_it


def test_a_load_that_lacks_memory_is_done_again_alone(turns):
    neighbour, judge = Judge(), Judge()
    beside = seated(turns, neighbour)
    beside.load(PROBLEM)
    judge.on_load = out_of_memory(1)
    assert seated(turns, judge).load(PROBLEM)
    assert (neighbour.abandoned, judge.loads) == (1, 2)
    assert beside.verify(KERNEL, Tier.FAST).passed
    assert neighbour.loads == 2, "the neighbour loads again at its next turn"


def test_alone_it_is_the_problem_that_does_not_fit(turns):
    judge = Judge()
    judge.on_load = out_of_memory(1)
    with pytest.raises(ProblemError, match="do not fit"):
        seated(turns, judge).load(PROBLEM)
    assert judge.loads == 1


def test_another_error_costs_no_neighbour_its_judge(turns):
    neighbour, judge = Judge(), Judge()
    seated(turns, neighbour).load(PROBLEM)

    def broken():
        raise ProblemError("forward raises")

    judge.on_load = broken
    with pytest.raises(ProblemError):
        seated(turns, judge).load(PROBLEM)
    assert neighbour.abandoned == 0


def oom(tier):
    verdict = fake_verdict(Status.RUNTIME_ERROR, KERNEL.id, tier=tier)
    return replace(verdict, evidence=Evidence(kind="oom_gpu", message="out of memory"))


def held_to_less(tier):
    """A refusal for which the judge itself lacked memory."""
    verdict = fake_verdict(Status.INCORRECT_NUMERICAL, KERNEL.id, tier=tier)
    skipped = {"correctness:another draw of far": "eager does not fit beside the golden"}
    return replace(verdict, checks_skipped=skipped)


class Greedy(Judge):
    """Its candidate, or its own eager, finds no memory, the first times."""

    def __init__(self, times, verdict=oom):
        super().__init__()
        self.times = times
        self.verdict = verdict

    def verify(self, candidate, tier):
        super().verify(candidate, tier)
        self.times -= 1
        return self.verdict(tier) if self.times >= 0 else fake_verdict(1.0, candidate.id, tier=tier)


@pytest.mark.parametrize("verdict", [oom, held_to_less])
@pytest.mark.parametrize(
    ("neighbours", "times", "passes"), [(1, 1, True), (0, 1, False), (1, 9, False)]
)
def test_a_candidate_that_lacks_memory_gets_a_second_verdict_only_where_neighbours_had_some(
    turns, neighbours, times, passes, verdict
):
    for _ in range(neighbours):
        seated(turns).load(PROBLEM)
    judge = Greedy(times, verdict)
    mine = seated(turns, judge)
    mine.load(PROBLEM)
    assert mine.verify(KERNEL, Tier.FAST).passed is passes
    assert len(judge.verified(Tier.FAST)) == 1 + neighbours


def test_a_dropped_judge_loads_again_off_the_clock_and_one_that_died_does_not(turns):
    judge = Judge()
    mine = seated(turns, judge)
    mine.load(PROBLEM)
    depth, seen = [0], []

    class Paused:
        def __enter__(self):
            depth[0] += 1

        def __exit__(self, *exc):
            depth[0] -= 1

    mine.pause_by(Paused)
    judge.on_load = lambda: seen.append(depth[0])
    turns.clear(turns.enter(lambda: None))
    assert mine.verify(KERNEL, Tier.FAST).passed
    assert seen == [1]
    assert mine.verify(KERNEL, Tier.FAST).passed
    assert seen == [1], "it stays"

    def dies(candidate, tier):
        raise WorkerDied("the judge ended")

    judge.on_verify = dies
    with pytest.raises(WorkerDied):
        mine.verify(KERNEL, Tier.FAST)
    judge.on_verify = lambda candidate, tier: None
    assert mine.verify(KERNEL, Tier.FAST).passed
    assert seen == [1], "a judge that ended is started again by the verifier itself, on the clock"


def test_a_build_that_its_judges_drop_cut_off_is_no_fault(turns):
    judge = Judge()
    mine = seated(turns, judge)
    mine.load(PROBLEM)

    def cut_off(candidate):
        turns.clear(turns.enter(lambda: None))
        raise WorkerDied("the judge ended")

    judge.on_build = cut_off
    mine.build(KERNEL)

    def fails(candidate):
        raise InfraError("no compiler")

    judge.on_build = fails
    mine.build(KERNEL)  # there is no judge yet to be at fault
    assert mine.verify(KERNEL, Tier.FAST).passed
    with pytest.raises(InfraError, match="no compiler"):
        mine.build(KERNEL)
