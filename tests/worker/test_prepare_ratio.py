"""Work done ahead counts once over one call, and hardly over many."""

import pytest

from hotloop.worker.performance import speedup_with_prepare


def test_both_sides_pay_for_their_own_work_ahead():
    ratios = speedup_with_prepare(1.0, 3.0, {"flex": 2.0, "eager": 8.0}, {"flex": 30.0})
    assert ratios["flex"]["1"] == pytest.approx(32.0 / 4.0)
    assert ratios["flex"]["32"] == pytest.approx((2.0 + 30.0 / 32) / (1.0 + 3.0 / 32))
    assert ratios["eager"]["1"] == pytest.approx(8.0 / 4.0)


def test_without_work_ahead_it_is_the_plain_ratio():
    assert speedup_with_prepare(0.5, 0.0, {"eager": 1.0}, {}) == {"eager": {"1": 2.0, "32": 2.0}}
