"""Clocks that disagree, ratios of a program to itself, and times that are a launch's."""

from __future__ import annotations

import pytest

from hotloop.worker.timing_rules import (
    LAUNCH_BOUND_MS,
    SLACK_MS,
    ClockPair,
    Control,
    CrossReading,
    agreement,
    control_limit_frac,
    is_launch_bound,
    leaves_gaps,
    slack_ms,
    understated_by,
)


def reading(slope_ms: float | None, blocked_ms: float | None, *, edge_ms: float = 0.0):
    empty = ClockPair(0.0011 + edge_ms, 0.0011 + edge_ms)
    return CrossReading(ClockPair(slope_ms, blocked_ms), empty, empty_ms=0.0011)


@pytest.mark.parametrize(
    ("ratio", "interval", "ms", "limit_frac", "holds"),
    [
        (1.0, (0.999, 1.001), 1.0, 0.03, True),
        (1.0099, (1.005, 1.015), 1.0, 0.01, True),
        (0.9901, (0.98, 0.995), 1.0, 0.01, True),
        (1.011, (1.005, 1.015), 1.0, 0.01, False),
        (0.989, (0.97, 1.01), 1.0, 0.03, True),  # calls scatter, at any length
        (0.989, (0.97, 0.999), 1.0, 0.01, False),  # but this is no scatter
        (0.96, (0.90, 1.01), 1.0, 0.03, False),
        (1.02, (0.99, 1.05), 0.008, 0.03, True),  # short calls scatter
        (1.02, (1.01, 1.03), 0.008, 0.01, False),  # but this is no scatter
        (1.04, (0.95, 1.10), 0.008, 0.03, False),
    ],
)
def test_a_program_against_itself(
    ratio: float, interval: tuple[float, float], ms: float, limit_frac: float, holds: bool
) -> None:
    control = Control("flex", ratio, interval, ms, tries=1)
    assert control.holds is holds
    assert control.to_json() == {
        "baseline": "flex", "ratio": ratio, "interval": list(interval), "limit_frac": limit_frac,
        "tries": 1, "holds": holds,
    }  # fmt: skip


def test_the_control_allows_the_clocks_own_steps_on_short_calls_only() -> None:
    assert control_limit_frac(0.002) == pytest.approx(0.032)
    assert control_limit_frac(0.0064) == pytest.approx(0.01)
    assert control_limit_frac(5.0) == 0.01


@pytest.mark.parametrize(
    ("claimed_ms", "cross_ms", "found"),
    [
        (0.0100, 0.0100, "agrees"),
        (0.0100, 0.0110, "agrees"),
        (0.0100, 0.0112, "claim_shorter"),
        (0.0021, 0.0023, "agrees"),  # 9 %, within 0.3 us
        (0.0015, 0.0019, "claim_shorter"),
        (0.0140, 0.0100, "claim_longer"),
    ],
)
def test_two_clocks(claimed_ms: float, cross_ms: float, found: str) -> None:
    assert agreement(claimed_ms, {"graph_slope": cross_ms}) == {"graph_slope": found}
    understated = understated_by(claimed_ms, {"graph_slope": cross_ms})
    assert understated == (cross_ms if found == "claim_shorter" else None)


def test_slack_is_the_larger_of_both() -> None:
    assert slack_ms(0.001) == SLACK_MS
    assert slack_ms(0.010) == pytest.approx(0.001)


def test_a_claim_falls_where_every_clock_saw_more_and_the_shorter_of_them_stands() -> None:
    assert understated_by(0.004, {"graph_slope": 0.0041, "blocked_stream": 0.006}) is None
    assert understated_by(0.004, {"graph_slope": 0.006, "blocked_stream": 0.0041}) is None
    assert understated_by(0.004, {"graph_slope": 0.008, "blocked_stream": 0.006}) == 0.006
    assert understated_by(0.004, {"blocked_stream": 0.006}) == 0.006
    assert understated_by(0.004, {}) is None


def test_what_lies_between_two_launches_is_not_the_calls_own() -> None:
    honest = reading(0.0057, 0.0058, edge_ms=0.0007)
    assert honest.own() == pytest.approx({"graph_slope": 0.0050, "blocked_stream": 0.0051})
    assert understated_by(0.0050, honest.own()) is None
    assert understated_by(0.0050, reading(0.0057, 0.0058).own()) == 0.0057


def test_a_near_empty_kernel_that_seems_shorter_than_by_cupti_takes_nothing_off() -> None:
    assert reading(0.005, 0.005, edge_ms=-0.0004).own() == {
        "graph_slope": 0.005, "blocked_stream": 0.005,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("cupti_ms", "graph_slope_ms", "blocked_stream_ms"),
    [(0.00291, 0.00350, 0.00448), (0.00707, 0.00808, 0.00916), (0.00586, 0.00639, 0.00736)],
)
def test_kernels_measured_on_an_h200_stand_and_half_of_their_time_does_not(
    cupti_ms: float, graph_slope_ms: float, blocked_stream_ms: float
) -> None:
    # add of 512 Ki, softmax of 2048 x 1024, product of 1 Ki: benchmarks/results/timing_h200.json
    empty = ClockPair(0.00111, 0.00159)
    found = CrossReading(ClockPair(graph_slope_ms, blocked_stream_ms), empty, empty_ms=0.00067)
    assert understated_by(cupti_ms, found.own()) is None
    assert understated_by(cupti_ms / 2, found.own()) is not None


def test_no_clock_says_less_than_nothing() -> None:
    found = reading(0.002, 0.002, edge_ms=0.003)
    assert found.own() == {"graph_slope": 0.0, "blocked_stream": 0.0}


@pytest.mark.parametrize(
    ("span_ms", "busy_ms", "gaps"),
    [(0.1, 0.1, False), (0.1, 0.095, False), (0.1, 0.09, True), (0.1, None, True)],
)
def test_a_call_that_waits_for_launches(span_ms: float, busy_ms: float | None, gaps: bool) -> None:
    assert leaves_gaps(span_ms, busy_ms) is gaps


def test_a_clock_that_could_not_look_is_left_out() -> None:
    assert reading(None, 0.005).own() == {"blocked_stream": 0.005}
    assert reading(None, None).own() == {}


def test_launch_bound() -> None:
    assert is_launch_bound(0.0029)
    assert not is_launch_bound(LAUNCH_BOUND_MS)
