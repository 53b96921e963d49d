import threading

import pytest

from hotloop.engine.lanes import Lanes
from hotloop.errors import ToolMissing
from hotloop.testing.store_suite import make_attempt

CANDIDATES = [make_attempt(number)[1] for number in range(8)]


def test_runs_as_many_at_a_time_as_there_are_lanes():
    both, peak, running = threading.Barrier(2, timeout=5.0), [0], set()
    mutex = threading.Lock()

    def build(candidate):
        with mutex:
            running.add(candidate.id)
            peak[0] = max(peak[0], len(running))
        both.wait()
        with mutex:
            running.discard(candidate.id)

    with Lanes(build, 2) as lanes:
        for ticket in [lanes.submit(candidate) for candidate in CANDIDATES]:
            ticket.wait()
    assert peak[0] == 2


def test_a_build_raises_where_it_is_awaited_and_the_lane_goes_on():
    def build(candidate):
        if candidate is CANDIDATES[0]:
            raise ToolMissing("no ptxas")

    with Lanes(build, 1) as lanes:
        bad, good = lanes.submit(CANDIDATES[0]), lanes.submit(CANDIDATES[1])
        good.wait()
        with pytest.raises(ToolMissing, match="no ptxas"):
            bad.wait()


def test_close_drops_what_has_not_started_and_waits_for_what_has():
    started, release, built = threading.Event(), threading.Event(), []

    def build(candidate):
        started.set()
        release.wait(5.0)
        built.append(candidate)

    lanes = Lanes(build, 1)
    for candidate in CANDIDATES[:3]:
        lanes.submit(candidate)
    assert started.wait(5.0)
    threading.Timer(0.05, release.set).start()
    lanes.close(wait_s=5.0)
    assert built == CANDIDATES[:1]


def test_no_lane_is_refused():
    with pytest.raises(ValueError, match="at least one lane"):
        Lanes(lambda candidate: None, 0)


def test_a_wait_with_a_time_limit_says_whether_the_build_ended():
    release = threading.Event()
    with Lanes(lambda candidate: release.wait(5.0), 1) as lanes:
        build = lanes.submit(CANDIDATES[0])
        assert not build.wait(0.01)
        release.set()
        assert build.wait(5.0)
