"""What is absent is called so, and foreign text cannot hide in a line."""

import pytest

from hotloop.core.verdict import Performance
from hotloop.report import display


@pytest.mark.parametrize(
    ("write", "zero"),
    [
        (display.number, "0.000"), (display.percent, "0.0 %"), (display.ratio, "0.00x"),
        (display.ms, "0.00 us"), (display.seconds, "0 s"), (display.memory, "0 B"),
        (display.count, "0"), (display.dollars, "$0.00"),
    ],
)  # fmt: skip
def test_nothing_is_not_nought(write, zero):
    assert write(None) in (display.NOT_MEASURED, display.UNKNOWN)
    assert write(0.0) == zero


def test_foreign_text_keeps_its_lines_and_loses_its_controls():
    assert display.visible("a\tb\r\nc\u202ed\x07") == "a\tb\nc\ufffdd\ufffd"
    assert display.visible("h\u00e9 \u4e2d") == "h\u00e9 \u4e2d"
    assert display.one_line("a\n b\x00", limit=9) == "a b\ufffd"
    assert display.one_line("x" * 10, limit=5) == "xxxx…"


def performance(**changes):
    fields = {"latency_ms": 0.001, "spread_ms": 0.0, "samples": 9, "timer": "cupti", "l2": "cold"}
    return Performance(**fields | changes)


def test_a_launch_bound_ratio_is_rough():
    rough = performance(speedup={"eager": 8.31}, timing_checks={"launch_bound": True})
    assert display.speedup(rough, "eager") == "about 8x"
    assert display.speedup(performance(speedup={"eager": 8.31}), "eager") == "8.31x"


def test_a_ratio_without_an_interval_is_not_claimed():
    loose = performance(speedup={"eager": 2.0})
    assert display.speedup_interval(loose, "eager") == ("not measured", "not claimed")
    sure = performance(speedup={"eager": 2.0}, speedup_ci={"eager": (1.9, 2.1)})
    assert display.speedup_interval(sure, "eager") == ("1.90 to 2.10", "win")
    even = performance(speedup={"eager": 1.0}, speedup_ci={"eager": (0.9, 1.1)})
    assert display.speedup_interval(even, "eager") == ("0.90 to 1.10", "no win")
    assert display.least_speedup(None) == display.least_speedup(performance()) == "not compared"
