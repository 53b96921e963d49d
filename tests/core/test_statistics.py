import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.core.statistics import (
    MIN_RESAMPLED,
    geometric_mean,
    interquartile_range,
    median,
    paired_speedup_interval,
    quantile,
    ratio_of_medians,
    speedup_interval,
)

times = st.lists(st.floats(0.001, 1000.0), min_size=MIN_RESAMPLED, max_size=30)


def noisy(centre_ms, count, seed, spread=0.05):
    rng = random.Random(seed)
    return [centre_ms * rng.lognormvariate(0.0, spread) for _ in range(count)]


def test_known_values():
    assert median([3.0, 1.0, 2.0]) == 2.0
    assert median([1.0, 2.0]) == 1.5
    assert quantile([0.0, 10.0], 0.25) == 2.5
    assert quantile([7.0], 0.9) == 7.0
    assert interquartile_range([1.0, 2.0, 3.0, 4.0, 5.0]) == 2.0
    assert interquartile_range([4.0]) == 0.0
    assert ratio_of_medians([4.0, 4.0, 100.0], [2.0]) == 2.0
    assert geometric_mean([1.0, 4.0, 16.0]) == pytest.approx(4.0)


@pytest.mark.parametrize("function", [median, interquartile_range, geometric_mean])
def test_no_samples_are_an_error(function):
    with pytest.raises(ValueError, match="at least one"):
        function([])


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_times_that_cannot_be_are_refused(bad):
    with pytest.raises(ValueError, match="over 0"):
        ratio_of_medians([1.0, bad], [1.0])
    with pytest.raises(ValueError, match="over 0"):
        speedup_interval([1.0] * 9, [1.0] * 8 + [bad])


@given(times, times, st.integers(0, 5))
def test_an_interval_holds_the_ratio_and_is_reproducible(above, below, seed):
    interval = speedup_interval(above, below, seed=seed, resamples=50)
    assert interval.low <= interval.high
    assert min(above) / max(below) <= interval.low
    assert interval.high <= max(above) / min(below)
    assert interval == speedup_interval(above, below, seed=seed, resamples=50)


def test_the_interval_covers_the_truth_about_95_times_in_100():
    hits = 0
    for trial in range(100):
        above, below = noisy(2.0, 30, trial), noisy(1.0, 30, 10_000 + trial)
        low, high = speedup_interval(above, below, seed=trial, resamples=300)
        hits += low <= 2.0 <= high
    assert 88 <= hits <= 100


def test_more_samples_give_a_narrower_interval():
    few = speedup_interval(noisy(2.0, 10, 1), noisy(1.0, 10, 2))
    many = speedup_interval(noisy(2.0, 200, 1), noisy(1.0, 200, 2), resamples=300)
    assert many.high - many.low < 0.5 * (few.high - few.low)


def test_pairs_cancel_a_drift_that_hits_both_sides():
    blocks = []
    for number in range(12):
        drift = 1.0 + 0.1 * number
        blocks.append(([2.0 * drift] * 5, [1.0 * drift] * 5))
    paired = paired_speedup_interval(blocks, resamples=300)
    assert paired.low == paired.high == pytest.approx(2.0)
    apart = speedup_interval(
        [t for block, _ in blocks for t in block],
        [t for _, block in blocks for t in block],
        resamples=300,
    )
    assert apart.high - apart.low > 0.1


def test_blocks_are_resampled_whole():
    # One block in six disagrees: samples of one block are not independent evidence.
    blocks = [([1.0] * 50, [1.0] * 50)] * 3 + [([1.2] * 50, [1.0] * 50)] * 3
    low, high = paired_speedup_interval(blocks, resamples=300)
    assert low == pytest.approx(1.0)
    assert high == pytest.approx(1.2)


def test_too_few_samples_give_no_interval():
    enough, few = [1.0] * MIN_RESAMPLED, [1.0] * (MIN_RESAMPLED - 1)
    assert speedup_interval(enough, enough, resamples=10) == (1.0, 1.0)
    with pytest.raises(ValueError, match=f"at least {MIN_RESAMPLED}"):
        speedup_interval(enough, few)
    with pytest.raises(ValueError, match=f"at least {MIN_RESAMPLED} blocks"):
        paired_speedup_interval([(enough, enough)] * 4)
