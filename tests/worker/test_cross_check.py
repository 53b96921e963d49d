"""A short call's figure beside two more clocks: too long may stand, too short may not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hotloop.core.verdict import Stage, Status
from hotloop.worker.cross_check import check_fresh, check_short, read_cross
from hotloop.worker.evaluation import Failed
from hotloop.worker.least_time import Floor, refuse_impossible
from hotloop.worker.performance import WALL, Timing
from hotloop.worker.replay import MAX_SETS, MIN_SETS, SCRATCH_BYTES, replayed_sets
from hotloop.worker.timing_rules import CrossReading

EMPTY = {"empty_ms": 0.0011, "empty_graph_slope_ms": 0.0012, "empty_blocked_stream_ms": 0.0013}


def readings(*pairs: tuple[float | None, float | None]) -> Iterator[CrossReading]:
    for slope_ms, blocked_ms in pairs:
        answer = {"graph_slope_ms": slope_ms, "blocked_stream_ms": blocked_ms}
        yield read_cross(answer | EMPTY)


def checked(claimed_ms: float, *pairs: tuple[float | None, float | None]) -> Timing:
    timing, read = Timing([claimed_ms] * 5), readings(*pairs)
    check_short(timing, lambda: next(read))
    return timing


@pytest.mark.parametrize("pair", [(0.0051, 0.0052), (0.0040, 0.0041), (None, 0.0052), (None, None)])
def test_an_honest_figure_stands(pair: tuple[float | None, float | None]) -> None:
    timing = checked(0.005, pair)
    assert (timing.samples, timing.timer, timing.doubts) == ([0.005] * 5, "cupti", [])
    found = timing.checks["clocks"]
    assert found["claimed_ms"] == 0.005
    assert (found["graph_slope_ms"], found["blocked_stream_ms"]) == pair
    assert found["empty_kernel_ms"] == 0.0011


def test_a_claim_that_both_clocks_saw_more_of_is_replaced() -> None:
    timing = checked(0.005, (0.0101, 0.0112), (0.0101, 0.0112))
    assert timing.timer == WALL
    assert timing.samples == pytest.approx([0.0100])
    assert "other clocks" in timing.doubts[0]
    assert timing.checks["clocks"]["found"] == {
        "graph_slope": "claim_shorter", "blocked_stream": "claim_shorter",
    }  # fmt: skip


def test_a_claim_that_one_of_them_bears_out_stands() -> None:
    timing = checked(0.005, (0.0101, 0.0052), (0.0101, 0.0052))
    assert (timing.timer, timing.doubts) == ("cupti", [])
    assert timing.checks["clocks"]["found"]["graph_slope"] == "claim_shorter"


def test_one_disturbed_reading_is_taken_again() -> None:
    timing = checked(0.005, (0.0101, 0.0112), (0.0050, 0.0112))
    assert (timing.timer, timing.doubts) == ("cupti", [])


@pytest.mark.parametrize(
    ("claimed_ms", "fresh_ms", "n_sets", "stands"),
    [
        (1.0, 1.1, 16, True),
        (1.0, 1.9, 16, True),  # cold, and the clock still ramps up
        (0.010, 0.040, 16, True),  # 0.5 ms of hand-over in 16 calls
        (0.010, 0.060, 16, False),
        (1.0, 2.1, 16, False),
    ],
)
def test_a_claim_beside_calls_on_new_values(
    claimed_ms: float, fresh_ms: float, n_sets: int, stands: bool
) -> None:
    timing = Timing([claimed_ms])
    check_fresh(timing, fresh_ms, n_sets)
    assert timing.checks["fresh_batch_ms"] == fresh_ms
    assert timing.samples == [claimed_ms if stands else fresh_ms]
    assert (timing.timer == WALL) is not stands
    assert bool(timing.doubts) is not stands


def test_figures_that_are_none_are_left_out() -> None:
    answer = {"graph_slope_ms": "fast", "blocked_stream_ms": float("nan"), "empty_ms": None}
    assert read_cross(answer).own() == {}


def test_an_unknown_launch_takes_nothing_off() -> None:
    known = {"graph_slope_ms": 0.008, "blocked_stream_ms": 0.009} | EMPTY
    assert read_cross(known).own()["graph_slope"] < 0.008
    assert read_cross(known | {"empty_ms": None}).own() == {
        "graph_slope": 0.008, "blocked_stream": 0.009,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("there", "scratch_bytes", "expected"),
    [
        (16, 0, MAX_SETS),
        (2, 0, 2),
        (16, SCRATCH_BYTES, MIN_SETS),
        (16, SCRATCH_BYTES // 8, 8),
        (3, SCRATCH_BYTES, 3),
    ],
)
def test_short_calls_get_many_sets_and_hungry_ones_few(
    there: int, scratch_bytes: int, expected: int
) -> None:
    assert replayed_sets(there, scratch_bytes) == expected


def test_a_time_under_the_physics_floor_is_refused_with_both_figures() -> None:
    with pytest.raises(Failed, match="expected at least 0.1 ms .* measured 0.09 ms") as caught:
        refuse_impossible(0.09, Floor(0.1, "compulsory bytes"))
    failed = caught.value
    assert (failed.status, failed.stage) == (Status.REWARD_HACK, Stage.PERFORMANCE)
    assert failed.evidence.kind == "physics"
    assert failed.evidence.details == {"measured_ms": 0.09, "least_ms": 0.1}


@pytest.mark.parametrize("floor", [Floor(0.1, "all bytes"), Floor(0.0, "nothing known")])
def test_a_time_at_the_floor_is_not_refused(floor: Floor) -> None:
    refuse_impossible(0.096, floor)  # 4 % under: the clocks may be off by 5
    assert floor.to_json() == {"ms": floor.ms, "of": floor.of}
