"""Verifications under a lease: judges that fall silent, answer late, or fail again and again."""

import time
from dataclasses import replace

import pytest

from hotloop.core.verdict import Status, Tier
from hotloop.engine import StopReason
from hotloop.errors import DeviceLost, WorkerDied
from hotloop.store.reader import RunReader
from hotloop.store.sqlite import SqliteStore
from hotloop.testing.fakes import StoppableVerifier, small_latency_ms

HEARTBEAT_S = 0.02


class Kernel:
    """Fails the machine whenever one kernel, by its place of arrival, is verified."""

    def __init__(self, *places, times=99):
        self.places = places
        self.left = times
        self.seen = []

    def __call__(self, candidate, tier):
        if candidate.id not in self.seen:
            self.seen.append(candidate.id)
        if self.seen.index(candidate.id) + 1 in self.places and self.left:
            self.left -= 1
            raise WorkerDied("the judge ended with signal 9")


@pytest.fixture
def quick(bench):
    """A bench whose judge is asked for signs of life every few milliseconds."""
    return replace(bench, verifier=StoppableVerifier(), heartbeat_s=HEARTBEAT_S)


def statuses(result):
    return [a.verdict.status for a in result.attempts]


def stop_at(verifier, number):
    """Stop the judge in its nth verification, once."""
    seen = []

    def on_verify(candidate, tier):
        seen.append(candidate.id)
        if len(seen) == number:
            verifier.gone_on.clear()

    verifier.on_verify = on_verify


def test_a_judge_that_falls_silent_is_given_up_and_the_next_one_judges(quick):
    stop_at(quick.verifier, 2)
    result = quick.run(max_candidates=3)
    assert statuses(result) == [Status.PASSED] * 3
    assert quick.verifier.abandoned == 1
    ids = quick.verifier.verified(Tier.FAST)
    assert (len(ids), ids[1]) == (4, ids[2])
    (warning,) = quick.store.notes("warning")
    assert "no sign of life" in warning["message"]


def test_a_late_result_is_kept_and_not_scored(quick, tmp_path):
    with SqliteStore(tmp_path / "run") as store:
        quick.store = store
        stop_at(quick.verifier, 2)
        late = []

        def behaviour(point, tier):
            late.append(point)
            return 0.001 if len(late) == 2 else small_latency_ms(point, tier)

        quick.verifier.behaviour = behaviour
        result = quick.run(max_candidates=3)
    with RunReader(tmp_path / "run") as reader:
        events = [e for e in reader.events() if "epoch" in e.payload]
    (stale,) = [e.payload for e in events if e.kind == "judged_late"]
    assert stale["verdict"]["performance"]["latency_ms"] == 0.001
    assert [e.kind for e in events if e.payload["epoch"] == stale["epoch"]] == [
        "leased", "ended", "judged_late",
    ]  # fmt: skip
    assert min(a.objective for a in result.attempts) > 0.001
    assert [e.kind for e in events].count("judged") == 4, "three fast ones and a final one"


def test_a_judge_that_is_slow_and_alive_is_waited_for(quick):
    quick.verifier.on_verify = lambda candidate, tier: time.sleep(10 * HEARTBEAT_S)
    result = quick.run(max_candidates=2)
    assert statuses(result) == [Status.PASSED] * 2
    assert quick.verifier.abandoned == 0
    assert len(quick.verifier.verified(Tier.FAST)) == 2


def test_what_the_machine_fails_at_three_times_is_set_apart_and_the_run_goes_on(bench):
    bench.verifier.on_verify = Kernel(2)
    result = bench.run(max_candidates=4)
    assert statuses(result) == [
        Status.PASSED, Status.INCONCLUSIVE, Status.PASSED, Status.PASSED,
    ]  # fmt: skip
    assert result.reason is StopReason.CANDIDATES
    lost = result.attempts[1]
    assert lost.verdict.evidence.kind == "not_judged"
    assert "failed 3 times" in lost.verdict.message
    assert "signal 9" in lost.verdict.message
    assert bench.verifier.verified(Tier.FAST).count(lost.candidate_id) == 3
    assert any(lost.candidate_id in note["message"] for note in bench.store.notes("warning"))


def test_two_failures_are_not_three(bench):
    bench.verifier.on_verify = Kernel(2, times=2)
    assert statuses(bench.run(max_candidates=4)) == [Status.PASSED] * 4


def test_a_machine_that_judges_nothing_stops_the_run_with_a_clean_count(bench):
    bench.verifier.on_verify = Kernel(2, 3)
    with pytest.raises(WorkerDied):
        bench.run(max_candidates=4)
    first, apart, pending = bench.store.attempts()[:3]
    assert (first.verdict.passed, apart.verdict.status) == (True, Status.INCONCLUSIVE)
    assert pending.verdict is None
    mended = bench.resumed()
    result = mended.run(max_candidates=4)
    assert statuses(result)[2:] == [Status.PASSED] * 2
    assert mended.verifier.verified(Tier.FAST)[0] == pending.candidate_id


def test_a_machine_that_loads_nothing_any_more_sets_nothing_apart(bench):
    def load_no_more():
        if bench.verifier.calls:
            raise DeviceLost("no GPU")

    bench.verifier.on_load = load_no_more
    bench.verifier.on_verify = Kernel(1)
    with pytest.raises(DeviceLost):
        bench.run(max_candidates=4)
    assert bench.store.attempts()[0].verdict is None


def test_a_final_that_the_machine_fails_at_is_shown_and_the_next_best_is_tried(bench):
    failing = []

    def fail(candidate, tier):
        if tier is Tier.FINAL and candidate.id in (failing or [candidate.id]):
            failing.append(candidate.id)
            raise WorkerDied("the judge ended with signal 9")

    bench.verifier.on_verify = fail
    result = bench.run(max_candidates=20)
    assert len(failing) == 3
    assert result.final.passed
    assert result.final.candidate_id != failing[0]
    finals = {n["candidate_id"]: n["verdict"]["status"] for n in bench.store.notes("final")}
    assert finals[failing[0]] == "INCONCLUSIVE"


class Dies(BaseException):
    """Stands for the death of the process."""


def die(candidate, tier):
    raise Dies


def test_a_candidate_that_takes_the_whole_run_down_is_set_apart(bench):
    bench.verifier.on_verify = die
    for _ in range(3):
        with pytest.raises(Dies):
            bench.run(max_candidates=3)
    bench.verifier.on_verify = lambda candidate, tier: None
    result = bench.run(max_candidates=3)
    assert statuses(result) == [Status.INCONCLUSIVE, Status.PASSED, Status.PASSED]
    assert "killed" in result.attempts[0].verdict.message


def test_a_user_who_stops_the_run_blames_nobody(bench):
    def press(candidate, tier):
        raise KeyboardInterrupt

    bench.verifier.on_verify = press
    for _ in range(4):
        assert bench.run(max_candidates=3).reason is StopReason.INTERRUPTED
    bench.verifier.on_verify = lambda candidate, tier: None
    assert statuses(bench.run(max_candidates=3)) == [Status.PASSED] * 3


def test_a_verdict_that_came_in_before_the_crash_is_not_made_again(bench):
    real = bench.store.conclude

    def crash(attempt):
        raise Dies

    bench.store.conclude = crash
    with pytest.raises(Dies):
        bench.run(max_candidates=3)
    bench.store.conclude = real
    done = bench.verifier.verified(Tier.FAST)
    assert len(done) == 1
    result = bench.run(max_candidates=3)
    assert statuses(result) == [Status.PASSED] * 3
    assert bench.verifier.verified(Tier.FAST).count(done[0]) == 1
