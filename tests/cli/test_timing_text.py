"""What a terminal says of a time: no decimals for a launch, no ratio where none is believed."""

from __future__ import annotations

from typing import Any

from hotloop.cli import timing_text, wording
from hotloop.core.verdict import Performance


def performance(**fields: Any) -> Performance:
    usual = {
        "latency_ms": 0.002, "spread_ms": 0.0001, "samples": 50, "timer": "cupti", "l2": "cold",
        "baselines": {"eager": 0.0042}, "speedup": {"eager": 2.1},
    }  # fmt: skip
    return Performance(**(usual | fields))


CONTROL = {"baseline": "eager", "ratio": 1.0312, "limit_frac": 0.01}


def test_a_usual_time_has_its_ratio_and_no_notes() -> None:
    usual = performance()
    assert timing_text.ratio_after(usual, "eager") == ": 2.10x"
    assert timing_text.notes(usual) == []
    assert wording.speedup(usual) == "2.10x over eager"


def test_a_launch_bound_time_has_no_decimals_to_speak_of() -> None:
    checks = {"launch_bound": True, "clocks": {"empty_kernel_ms": 0.00112}}
    short = performance(timing_checks=checks)
    assert wording.speedup(short) == "about 2.1x (launch-bound) over eager"
    assert timing_text.notes(short) == [
        "bound       by launching it: an empty kernel takes 1.12 us; a ratio says little here"
    ]
    much = performance(timing_checks=checks, speedup={"eager": 14.7})
    assert timing_text.ratio(much, "eager") == "about 15x (launch-bound)"


def test_a_doubt_is_told_and_no_ratio_is() -> None:
    checks = {"control": CONTROL, "doubts": ["eager timed against itself gave 1.0312"]}
    doubted = performance(speedup={}, timing_checks=checks)
    assert timing_text.ratio_after(doubted, "eager") == timing_text.NOT_COMPARED
    assert wording.speedup(doubted) == wording.NOTHING
    assert timing_text.notes(doubted) == [
        "not sure    eager timed against itself gave 1.0312",
        "control     eager against itself: 1.0312 (1 within 0.01)",
    ]
