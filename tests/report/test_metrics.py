import pytest

from hotloop.core.verdict import Performance
from hotloop.report.metrics import Speedup, fast_p, is_win, speedup_over


def speedup(ratio, low, high):
    return Speedup(ratio=ratio, low=low, high=high)


def performance(**fields):
    return Performance(
        latency_ms=1.0, spread_ms=0.1, samples=100, timer="cupti", l2="cold", **fields
    )


@pytest.mark.parametrize(
    ("found", "wins"),
    [
        (speedup(1.5, 1.4, 1.6), True),
        (speedup(1.5, 1.021, 2.0), True),
        (speedup(1.5, 1.02, 2.0), False),
        (speedup(1.03, 0.99, 1.08), False),
        (None, False),
    ],
)
def test_a_win_is_decided_by_the_lower_bound(found, wins):
    assert is_win(found) is wins


def test_a_stored_ratio_counts_only_with_its_interval():
    full = performance(speedup={"flex": 1.5}, speedup_ci={"flex": (1.4, 1.6)})
    assert speedup_over(full, "flex") == speedup(1.5, 1.4, 1.6)
    assert speedup_over(full, "eager") is None
    assert speedup_over(performance(speedup={"flex": 1.5}), "flex") is None
    broken = performance(speedup={"flex": 1.5}, speedup_ci={"flex": (1.4,)})
    with pytest.raises(ValueError, match="flex"):
        speedup_over(broken, "flex")


def test_fast_p_counts_problems_without_a_kernel():
    found = [speedup(2.0, 1.9, 2.1), speedup(1.1, 1.0, 1.2), None, None]
    assert fast_p(found, 1.0) == 0.5
    assert fast_p(found, 1.5) == 0.25
    assert fast_p(found, 2.0) == 0.0
    assert fast_p([], 1.0) is None
