"""The judge's clock records nothing where nothing is timed: records slow every launch down."""

import pytest

from hotloop.worker import timed
from hotloop.worker.timed import make_clock_once, rest_clock

torch = pytest.importorskip("torch")


class Counted:
    """Counts how often it was told to rest."""

    def __init__(self):
        self.rests = 0

    def pause(self):
        self.rests += 1


def test_a_clock_that_was_made_rests_and_none_is_made_for_it(monkeypatch):
    monkeypatch.setattr(timed, "_CLOCK", [])
    rest_clock()
    assert timed._CLOCK == []
    clock = Counted()
    monkeypatch.setattr(timed, "_CLOCK", [clock])
    rest_clock()
    assert clock.rests == 1


@pytest.mark.gpu
def test_launches_are_not_recorded_until_the_next_measurement():
    values, clock = torch.ones(1 << 10, device="cuda"), make_clock_once()
    recorded = clock.measure(lambda: values.add_(1.0))[1]
    rest_clock()
    for _ in range(1000):
        values.add_(1.0)
    torch.cuda.synchronize()
    if clock.timer == "cupti":
        assert clock._drain() == []
    again = clock.measure(lambda: values.add_(1.0))[1]
    assert again.kernels == recorded.kernels
