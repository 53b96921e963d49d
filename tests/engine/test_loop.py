import threading

import pytest

from hotloop.core.space import Dimension, Space
from hotloop.core.verdict import Status, Tier
from hotloop.engine import StopReason, run_search
from hotloop.errors import DeviceLost, ForeignRun, InfraError, ProblemError, WorkerDied
from hotloop.testing.fakes import (
    SMALL_SPACE,
    FakeGenerator,
    FakeVerifier,
    make_problem,
    make_spec,
    small_latency_ms,
)

BEST_POINT = {"BLOCK": 64, "num_warps": 8, "split": False}


def statuses(result):
    return [a.verdict.status if a.verdict else None for a in result.attempts]


class Flaky:
    """Raises a machine's fault at chosen calls, else behaves."""

    def __init__(self, *failing_calls):
        self.failing_calls = failing_calls
        self.calls = 0

    def __call__(self, point, tier):
        self.calls += 1
        if self.calls in self.failing_calls:
            raise WorkerDied("the judge ended with signal 9")
        return small_latency_ms(point, tier)


def test_finds_the_best_point_and_verifies_it_at_the_final_tier(bench):
    result = bench.run()
    assert result.passed
    assert result.reason is StopReason.EXHAUSTED
    best = next(a for a in result.attempts if a.id == result.best_attempt_id)
    assert best.point == BEST_POINT
    assert result.fast == best.verdict
    assert result.final.tier is Tier.FINAL
    assert result.final.candidate_id == best.candidate_id
    assert len(result.attempts) == 48


def test_failing_candidates_are_data(bench):
    found = statuses(bench.run())
    assert found.count(Status.COMPILE_ERROR) == 3
    assert found.count(Status.PASSED) == 45


def test_the_listener_hears_the_story_in_order(bench):
    result = bench.run(max_candidates=3)
    kinds = bench.listener.kinds()
    assert kinds[0] == "setup"
    assert kinds[-1] == "stopped"
    assert kinds.count("started") == kinds.count("building") == kinds.count("finished") == 3
    assert kinds.index("started") < kinds.index("verifying") < kinds.index("finished")
    assert kinds.index("final") > max(i for i, kind in enumerate(kinds) if kind == "finished")
    objectives = [p["attempt"].objective for p in bench.listener.payloads("best")]
    assert objectives == sorted(objectives, reverse=True)
    assert objectives[-1] == result.fast.performance.latency_ms


def test_what_the_listener_hears_is_in_the_journal_already(bench):
    missing = []

    def listen(event):
        if event.kind == "finished":
            stored = {a.id: a for a in bench.store.attempts()}
            if stored.get(event.payload["attempt"].id) != event.payload["attempt"]:
                missing.append(event)

    bench.listener = listen
    bench.run(max_candidates=5)
    assert missing == []


def test_max_candidates_ends_the_run(bench):
    result = bench.run(max_candidates=7)
    assert result.reason is StopReason.CANDIDATES
    assert len(result.attempts) == len(bench.verifier.verified(Tier.FAST)) == 7
    assert None not in statuses(result)


def test_builds_run_ahead_of_the_verifier(bench):
    builds = threading.Semaphore(0)
    ahead = []

    def wait_for_the_next_builds(candidate, tier):
        if not ahead:
            # This one's own build and those of the two lanes, while the verifier is busy.
            ahead.extend(builds.acquire(timeout=5.0) for _ in range(3))

    bench.verifier.on_build = lambda candidate: builds.release()
    bench.verifier.on_verify = wait_for_the_next_builds
    bench.run(max_candidates=5)
    assert ahead == [True, True, True]


def test_candidates_are_verified_in_the_order_of_their_proposals(bench):
    first_may_end = threading.Event()
    built = []

    def build(candidate):
        built.append(candidate.id)
        if len(built) == 1:
            assert first_may_end.wait(timeout=5.0)
        else:
            first_may_end.set()

    bench.verifier.on_build = build
    result = bench.run(max_candidates=4)
    expected = [a.candidate_id for a in result.attempts]
    assert bench.verifier.verified(Tier.FAST) == expected


def test_verifications_never_overlap(bench):
    busy = threading.Lock()
    overlaps = []

    def verify(candidate, tier):
        if not busy.acquire(blocking=False):
            overlaps.append(candidate.id)
            return
        busy.release()

    bench.verifier.on_verify = verify
    bench.run(max_candidates=10)
    assert overlaps == []


def test_the_same_candidate_is_verified_once(bench):
    # Two schedules that give the same source: only BLOCK reaches the text.
    class Coarse(FakeGenerator):
        def generate(self, info, proposal, *, deadline_s=None):
            block = {"BLOCK": proposal.point["BLOCK"], "num_warps": 4, "split": False}
            return super().generate(info, type(proposal)(id=0, action="schedule", point=block))

    bench.generator = Coarse()
    result = bench.run()
    assert len(result.attempts) == 48
    assert None not in statuses(result)
    assert len(bench.verifier.verified(Tier.FAST)) == 4
    builds = [candidate_id for call, candidate_id in bench.verifier.calls if call == "build"]
    assert len(builds) == 4


def test_a_machine_fault_is_retried_once_on_the_same_proposal(bench):
    bench.verifier.behaviour = Flaky(2)
    result = bench.run(max_candidates=3)
    ids = bench.verifier.verified(Tier.FAST)
    assert ids[1] == ids[2]
    assert statuses(result) == [Status.PASSED] * 3
    (warning,) = bench.listener.payloads("warning")
    assert "signal 9" in warning["message"]


def test_a_machine_that_is_gone_stops_the_run_and_keeps_everything(bench):
    def load_no_more():
        if bench.verifier.calls:
            raise DeviceLost("no GPU")

    bench.verifier.on_load = load_no_more
    bench.verifier.behaviour = Flaky(3, 4, 5)
    with pytest.raises(DeviceLost, match="no GPU"):
        bench.run(max_candidates=5)
    verdicts = [a.verdict for a in bench.store.attempts()]
    assert [v is not None for v in verdicts[:3]] == [True, True, False]
    assert bench.store.notes("stopped")[-1]["reason"] == "failed"

    healthy = bench.resumed()
    healthy.verifier.behaviour = small_latency_ms
    result = healthy.run(max_candidates=5)
    assert statuses(result) == [Status.PASSED] * 5
    pending_id = bench.store.attempts()[2].candidate_id
    assert healthy.verifier.verified(Tier.FAST)[0] == pending_id
    assert len(healthy.verifier.verified(Tier.FAST)) == 3


def test_a_machine_fault_in_a_lane_leaves_one_more_chance(bench):
    faults = [WorkerDied("the lane ended with signal 9")]

    def build(candidate):
        if faults:
            raise faults.pop()

    bench.verifier.on_build = build
    assert statuses(bench.run(max_candidates=3)) == [Status.PASSED] * 3
    assert len(bench.listener.payloads("warning")) == 1


def test_a_machine_that_builds_nothing_and_judges_nothing_stops_the_run(bench):
    def build(candidate):
        raise WorkerDied("the lane ended with signal 9")

    bench.verifier.on_build = build
    bench.verifier.behaviour = Flaky(*range(1, 7))
    with pytest.raises(WorkerDied, match="the judge ended"):
        bench.run(max_candidates=3)
    assert len(bench.verifier.verified(Tier.FAST)) == 6


@pytest.mark.parametrize(("deaths", "passes"), [(1, True), (2, False)])
def test_a_judge_that_dies_while_it_loads_is_started_once_more(bench, deaths, passes):
    left = [WorkerDied("the judge ended with signal 9")] * deaths

    def die():
        if left:
            raise left.pop()

    bench.verifier.on_load = die
    if passes:
        assert bench.run(max_candidates=2).passed
        assert len(bench.listener.payloads("warning")) == 1
    else:
        with pytest.raises(WorkerDied):
            bench.run(max_candidates=2)


def test_a_broken_problem_costs_nothing(bench):
    class Broken(FakeVerifier):
        def load(self, problem):
            raise ProblemError("the reference raises")

    bench.verifier = Broken()
    with pytest.raises(ProblemError, match="the reference raises"):
        bench.run()
    assert list(bench.store.attempts()) == []
    assert bench.store.spent_s() == 0.0


def test_why_a_problem_could_not_be_loaded_is_written_down(bench):
    def refuse():
        raise InfraError("no such host")

    bench.verifier.on_load = refuse
    with pytest.raises(InfraError, match="no such host"):
        bench.run()
    (stopped,) = bench.store.notes("stopped")
    assert (stopped["reason"], stopped["message"]) == (StopReason.FAILED, "no such host")


def test_another_problem_in_the_store_is_refused_before_loading(bench):
    bench.run(max_candidates=1)
    other = bench.resumed()
    problem = make_problem("fake/other", source="# another\n")
    with pytest.raises(ForeignRun, match="fake/other"):
        run_search(problem, other.parts(), spec=make_spec(problem))
    assert other.verifier.calls == []


def test_needs_no_listener_and_no_stop_flag(bench):
    problem = make_problem()
    assert run_search(problem, bench.parts(), spec=make_spec(problem)).passed


def test_on_cpu_there_is_no_final_tier_and_no_time(cpu_bench):
    result = cpu_bench.run(max_candidates=10)
    assert result.passed
    assert result.final is None
    assert cpu_bench.verifier.verified(Tier.FINAL) == []
    assert all(a.verdict.performance is None for a in result.attempts)
    costs = [a.objective for a in result.attempts if a.objective is not None]
    assert (
        result.best_attempt_id
        == min((a.objective, a.id) for a in result.attempts if a.objective is not None)[1]
    )
    assert min(costs) >= 0


def test_on_cpu_an_exhausted_strategy_ends_the_run_early(cpu_bench):
    result = cpu_bench.run(wall_s=1000.0)
    assert result.reason is StopReason.EXHAUSTED
    assert len(result.attempts) == 48
    assert result.spent_s < 1000.0


def test_a_run_where_nothing_passes_has_no_best(bench):
    bench.verifier.behaviour = lambda point, tier: Status.INCORRECT_NUMERICAL
    result = bench.run(max_candidates=4)
    assert not result.passed
    assert result.best_attempt_id is None
    assert bench.verifier.verified(Tier.FINAL) == []


def test_a_space_of_one_point(bench):
    bench.generator = FakeGenerator(
        Space(
            dimensions=(
                Dimension(name="BLOCK", choices=(64,)),
                Dimension(name="num_warps", choices=(8,)),
                Dimension(name="split", choices=(False,)),
            )
        )
    )
    result = bench.run()
    assert result.passed
    assert len(result.attempts) == 1


def test_starting_points_of_the_space_are_tried_first(bench):
    result = bench.run(max_candidates=2)
    assert [a.point for a in result.attempts] == [
        SMALL_SPACE.complete(start) for start in SMALL_SPACE.starts
    ]
