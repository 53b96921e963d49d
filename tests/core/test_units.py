"""Durations, rates and their formats."""

import pytest

from hotloop.core.units import format_ms, gbps, ns_to_ms, parse_duration_s, tflops


@pytest.mark.parametrize(
    ("text", "seconds"), [("45s", 45), ("15m", 900), ("1h30m", 5400), ("90", 90), ("0.5m", 30)]
)
def test_durations(text, seconds):
    assert parse_duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0s", "abc", "-5s", "5 minutes", "m", "1e3"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ValueError, match="expected a duration"):
        parse_duration_s(text)


def test_rates():
    assert tflops(2e12, 2.0) == 1000.0
    assert gbps(4e9, 1.0) == 4000.0
    assert ns_to_ms(1500) == 0.0015


@pytest.mark.parametrize(
    ("ms", "text"), [(0.0012, "1.20 us"), (0.512, "0.512 ms"), (12.345, "12.35 ms")]
)
def test_a_kernel_time_names_its_unit(ms, text):
    assert format_ms(ms) == text
