"""A candidate's clocks jump between calls and run as ever within one."""

import time

import pytest

from hotloop.worker.clocks import Clocks
from hotloop.worker.untimed import Untimed

HOUR_S = 3600.0


@pytest.fixture
def clocks():
    made = Clocks()
    made.install()
    yield made
    made.remove()


@pytest.mark.parametrize("name", ["time", "monotonic", "perf_counter", "process_time"])
def test_a_jump_shows_in_seconds_and_in_nanoseconds(clocks, name):
    seconds, ns = getattr(time, name), getattr(time, f"{name}_ns")
    begun_s, begun_ns = seconds(), ns()
    clocks.jump(HOUR_S)
    assert HOUR_S <= seconds() - begun_s < HOUR_S + 60
    assert isinstance(ns(), int)
    assert HOUR_S <= (ns() - begun_ns) / 1e9 < HOUR_S + 60


def test_clocks_never_go_back(clocks):
    begun = time.monotonic()
    clocks.jump(-HOUR_S)
    assert 0 <= time.monotonic() - begun < 60


def test_within_a_call_time_runs_as_ever(clocks):
    clocks.jump(HOUR_S)
    begun = time.perf_counter()
    time.sleep(0.01)
    assert 0.01 <= time.perf_counter() - begun < 10


def test_a_clock_by_its_number_jumps_too(clocks):
    begun = time.clock_gettime(time.CLOCK_MONOTONIC)
    clocks.jump(HOUR_S)
    assert time.clock_gettime(time.CLOCK_MONOTONIC) - begun >= HOUR_S


def test_dates_jump_too_and_those_of_a_given_time_do_not(clocks):
    year = time.gmtime().tm_year
    epoch = time.gmtime(0)
    clocks.jump(400 * 24 * HOUR_S)
    assert time.gmtime().tm_year > year
    assert time.localtime().tm_year > year
    assert int(time.strftime("%Y")) > year
    assert int(time.ctime()[-4:]) > year
    assert int(time.asctime()[-4:]) > year
    assert time.gmtime(0) == epoch
    assert time.strftime("%Y", epoch) == "1970"
    assert time.asctime(epoch).endswith("1970")


def test_removed_they_are_what_they_were():
    before = time.monotonic
    made = Clocks()
    made.install()
    assert time.monotonic is not before
    made.remove()
    assert time.monotonic is before


def test_calls_are_asked_for_with_jumps_of_seconds_to_a_year_and_without():
    drawn = [Untimed().request(0)["ahead_s"] for _ in range(200)]
    assert 0.0 in drawn
    assert max(drawn) > HOUR_S
    assert all(ahead == 0 or 2 <= ahead <= 400 * 24 * HOUR_S for ahead in drawn)
