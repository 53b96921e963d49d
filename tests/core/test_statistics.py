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
)

times = st.floats(0.001, 1000.0)
pairs = st.lists(st.tuples(times, times), min_size=MIN_RESAMPLED, max_size=30)


def noisy(centre_ms, count, seed, spread=0.05):
    rng = random.Random(seed)
    return [centre_ms * rng.lognormvariate(0.0, spread) for _ in range(count)]


def noisy_blocks(count, seed):
    """Blocks of one sample a side whose ratio is 2."""
    above, below = noisy(2.0, count, seed), noisy(1.0, count, 10_000 + seed)
    return [([a], [b]) for a, b in zip(above, below, strict=True)]


def test_known_values():
    assert median([3.0, 1.0, 2.0]) == 2.0
    assert median([1.0, 2.0]) == 1.5
    assert quantile([0.0, 10.0], 0.25) == 2.5
    assert quantile([7.0], 0.9) == 7.0
    assert interquartile_range([1.0, 2.0, 3.0, 4.0, 5.0]) == 2.0
    assert interquartile_range([4.0]) == 0.0
    assert geometric_mean([1.0, 4.0, 16.0]) == pytest.approx(4.0)


@pytest.mark.parametrize("function", [median, interquartile_range, geometric_mean])
def test_no_samples_are_an_error(function):
    with pytest.raises(ValueError, match="at least one"):
        function([])


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_times_that_cannot_be_are_refused(bad):
    with pytest.raises(ValueError, match="over 0"):
        paired_speedup_interval([([1.0, 1.0], [1.0, 1.0])] * 8 + [([1.0, bad], [1.0])])
    with pytest.raises(ValueError, match="over 0"):
        paired_speedup_interval([([1.0], [1.0])] * 8 + [([1.0], [bad])])


@given(pairs, st.integers(0, 5))
def test_an_interval_holds_the_ratio_and_is_reproducible(found, seed):
    blocks = [([above], [below]) for above, below in found]
    interval = paired_speedup_interval(blocks, seed=seed, resamples=50)
    assert interval.low <= interval.high
    assert min(above for above, _ in found) / max(below for _, below in found) <= interval.low
    assert interval.high <= max(above for above, _ in found) / min(below for _, below in found)
    assert interval == paired_speedup_interval(blocks, seed=seed, resamples=50)


def test_the_interval_covers_the_truth_about_95_times_in_100():
    hits = 0
    for trial in range(100):
        low, high = paired_speedup_interval(noisy_blocks(30, trial), seed=trial, resamples=300)
        hits += low <= 2.0 <= high
    assert 88 <= hits <= 100


def test_more_blocks_give_a_narrower_interval():
    few = paired_speedup_interval(noisy_blocks(10, 1))
    many = paired_speedup_interval(noisy_blocks(200, 1), resamples=300)
    assert many.high - many.low < 0.5 * (few.high - few.low)


def test_pairs_cancel_a_drift_that_hits_both_sides():
    blocks = []
    for number in range(12):
        drift = 1.0 + 0.1 * number
        blocks.append(([2.0 * drift] * 5, [1.0 * drift] * 5))
    paired = paired_speedup_interval(blocks, resamples=300)
    assert paired.low == paired.high == pytest.approx(2.0)
    alone = [([t], [1.0]) for block, _ in blocks for t in block]
    apart = paired_speedup_interval(alone, resamples=300)
    assert apart.high - apart.low > 0.1


def test_blocks_are_resampled_whole():
    # One block in six disagrees: samples of one block are not independent evidence.
    blocks = [([1.0] * 50, [1.0] * 50)] * 3 + [([1.2] * 50, [1.0] * 50)] * 3
    low, high = paired_speedup_interval(blocks, resamples=300)
    assert low == pytest.approx(1.0)
    assert high == pytest.approx(1.2)


def test_too_few_blocks_give_no_interval():
    block = ([1.0], [1.0])
    assert paired_speedup_interval([block] * MIN_RESAMPLED, resamples=10) == (1.0, 1.0)
    with pytest.raises(ValueError, match=f"at least {MIN_RESAMPLED} blocks"):
        paired_speedup_interval([block] * (MIN_RESAMPLED - 1))
